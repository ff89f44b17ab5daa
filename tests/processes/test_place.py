"""Which process is this? The variables of torchrun and Slurm, and flags that disagree with them."""

import pytest

from fewtags.errors import UserError
from fewtags.processes.launch import starts_others
from fewtags.processes.place import Place, find_place, first_node, slurm_address

TORCHRUN = {
    "RANK": "5",
    "WORLD_SIZE": "8",
    "LOCAL_RANK": "1",
    "LOCAL_WORLD_SIZE": "4",
    "MASTER_ADDR": "n1",
    "MASTER_PORT": "29500",
}
SLURM = {"SLURM_PROCID": "3", "SLURM_NTASKS": "4", "SLURM_LOCALID": "1", "SLURM_NNODES": "2"}


def test_torchrun_needs_no_flags():
    assert find_place(None, None, TORCHRUN) == Place(rank=5, size=8, local_rank=1, local_size=4)
    assert find_place(4, 2, TORCHRUN) == find_place(None, None, TORCHRUN)
    assert find_place(4, None, TORCHRUN).nodes == 2


def test_slurm_counts_only_if_several_are_asked_for():
    assert find_place(None, None, SLURM) is None
    assert find_place(2, 2, SLURM) == Place(rank=3, size=4, local_rank=1, local_size=2)


def test_a_shell_in_a_slurm_job_starts_its_own_processes():
    assert find_place(2, None, SLURM | {"SLURM_NTASKS": "1", "SLURM_PROCID": "0", "SLURM_LOCALID": "0"}) is None


def test_torchrun_inside_slurm_is_torchrun():
    assert find_place(4, 2, SLURM | TORCHRUN).rank == 5


def test_alone_without_variables_or_with_one_process():
    assert find_place(None, None, {}) is None
    assert find_place(None, None, TORCHRUN | {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1"}) is None


@pytest.mark.parametrize(("devices", "nodes", "told"), [(2, None, "--devices 2"), (4, 3, "--nodes 3")])
def test_flags_that_disagree_with_what_was_started(devices, nodes, told):
    with pytest.raises(UserError, match=f"{told}: but 8 processes were started, 4 on each of 2 machines"):
        find_place(devices, nodes, TORCHRUN)


def test_machines_with_unequal_numbers_of_processes():
    with pytest.raises(UserError, match="7 processes cannot be 4 on each machine"):
        find_place(None, None, TORCHRUN | {"WORLD_SIZE": "7"})


def test_a_variable_that_is_no_number():
    with pytest.raises(UserError, match="RANK='one': it has to be a number"):
        find_place(None, None, TORCHRUN | {"RANK": "one"})


@pytest.mark.parametrize(
    ("nodes", "first"),
    [("n1", "n1"), ("n1,n2", "n1"), ("gpu[07-09,12],big1", "gpu07"), ("a-b[3]", "a-b3"), ("x[1,4-5]", "x1")],
)
def test_the_first_node_of_a_slurm_list(nodes, first):
    assert first_node(nodes) == first


def test_the_address_of_a_slurm_job():
    job = {"SLURM_NODELIST": "gpu[3-4]", "SLURM_JOB_ID": "1234567"}
    assert slurm_address(job) == {"MASTER_ADDR": "gpu3", "MASTER_PORT": "19567"}
    assert slurm_address(job | {"MASTER_PORT": "9"})["MASTER_PORT"] == "9"


def test_who_starts_the_others(monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "SLURM_PROCID"):
        monkeypatch.delenv(name, raising=False)
    assert starts_others(2, None)
    assert not starts_others(None, None)
    assert not starts_others(1, 1)
    with pytest.raises(UserError, match="--nodes 2: other machines have to be started from outside"):
        starts_others(None, 2)
    for name, value in TORCHRUN.items():
        monkeypatch.setenv(name, value)
    assert not starts_others(4, 2)
