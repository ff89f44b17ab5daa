import os

import pytest

from fewtags.files import whole_file, whole_folder, write_bytes, write_text


def test_writes_and_replaces(tmp_path):
    target = tmp_path / "deep" / "er" / "notes.txt"
    write_text(target, "größer\n")
    assert target.read_bytes() == "größer\n".encode()
    write_bytes(target, b"new")
    assert target.read_bytes() == b"new"
    assert os.listdir(target.parent) == ["notes.txt"]


def test_a_failure_keeps_the_old_file_and_leaves_nothing_behind(tmp_path):
    target = tmp_path / "labels.csv"
    target.write_text("old")
    with pytest.raises(ZeroDivisionError), whole_file(target) as draft:
        draft.write_text(f"half of the n{1 / (draft.write_text('half') - 4)}")
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["labels.csv"]


def test_the_draft_keeps_the_suffix(tmp_path):
    with whole_file(tmp_path / "table.parquet") as draft:
        assert draft.suffix == ".parquet"
        assert draft.parent == tmp_path  # a move within one file system cannot be half done
        draft.write_bytes(b"x")


def test_a_symlink_stays_one(tmp_path):
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to(tmp_path / "real.txt")
    write_text(tmp_path / "link.txt", "new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"


def test_a_folder_appears_whole_or_not_at_all(tmp_path):
    target = tmp_path / "made"
    target.mkdir()
    with whole_folder(target) as draft:
        draft.mkdir()
        (draft / "a.txt").write_text("a")
        assert draft.parent == target.parent
        assert not list(target.iterdir())
    assert [path.name for path in target.iterdir()] == ["a.txt"]
    with pytest.raises(FileExistsError), whole_folder(tmp_path / "never") as draft:
        [draft.mkdir() for _ in range(2)]
    assert [path.name for path in tmp_path.iterdir()] == ["made"]
