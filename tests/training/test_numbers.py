"""NaN and infinity stop with names; the scarcest of labels make a model, or an error that says what is missing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file

import fewtags
from fewtags.batch import Batch
from fewtags.completion.complete import Wanted, complete
from fewtags.errors import UserError
from fewtags.evaluation import evaluate
from fewtags.finite import require_finite
from fewtags.images import cache
from fewtags.methods import METHODS, Setting
from fewtags.methods.base import Moment
from fewtags.methods.variants import definition
from fewtags.recipe import Recipe
from fewtags.training.data import CachedMaps, Collate, KnownLabels
from fewtags.training.module import TrainingModule, make_optimizer
from tests.conftest import TINY, write_colours

ONE_EPOCH = TINY | {"epochs": 1, "holdout": 0.0}
CHANNELS, SIDE = 5, 3


# Without a backbone: one step of every method on random maps and a handful of labels.

LABELS = {
    "no known present in a category": [[1, 0, -1], [1, -1, -1], [-1, -1, 0], [0, 0, -1]],
    "no known absent in a category": [[1, 1, -1], [1, -1, 1], [1, -1, 0], [0, 0, -1]],
    "nothing known of a category": [[1, 0, -1], [1, 0, 1], [-1, 0, 0], [0, 0, -1]],
    "all known": [[1, 1, -1], [1, -1, 1], [-1, 1, -1], [-1, -1, 1]],
    "one category": [[1], [-1], [0], [1]],
    "one image": [[1, -1, 0]],
    "a batch without any known label": [[0, 0, 0], [0, 0, 0]],
    "only present": [[1, 0, 1], [0, 1, 1]],
    "only absent": [[-1, 0, -1], [0, -1, -1]],
}


def step_of(name: str, labels: list[list[int]]) -> dict[str, torch.Tensor]:
    """The loss terms of one step in the last epoch, after which every parameter must be finite still."""
    values = np.array(labels, np.int8)
    recipe = Recipe(**(TINY | {"method": name})).replace(**definition(name))
    categories = tuple(f"c{number}" for number in range(values.shape[1]))
    torch.manual_seed(0)
    method = METHODS[name](Setting(recipe, categories, CHANNELS, torch.from_numpy(values).float(), None))
    maps = np.random.default_rng(0).normal(size=(len(values), 1, CHANNELS, SIDE, SIDE)).astype(np.float16)
    folds = (np.arange(values.size).reshape(values.shape) % 2).astype(np.int8)
    dataset = CachedMaps(maps, pooled=not METHODS[name].uses_map)
    rows = dataset.__getitems__([(row, 1) for row in range(len(values))])
    batch: Batch = Collate(KnownLabels(values, np.zeros_like(values), folds), 0)(rows)
    method.train()
    terms = dict(method.losses(method(batch.inputs), batch, Moment(2, 2.5)).terms)
    optimizer = make_optimizer(method.parameter_groups(), recipe)
    torch.stack(list(terms.values())).sum().backward()
    optimizer.step()
    method.after_step()
    assert all(bool(torch.isfinite(parameter).all()) for parameter in method.parameters())
    method.eval()
    assert bool(torch.isfinite(method(batch.inputs)["logits"]).all())
    return terms


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("name", METHODS)
def test_every_method_takes_a_finite_step(name: str, labels: str):
    terms = step_of(name, LABELS[labels])
    assert all(bool(torch.isfinite(term)) for term in terms.values()), terms


@pytest.mark.parametrize("name", ["plain", "ssgrl", "hst"])
def test_a_batch_without_any_known_label_teaches_the_classifier_nothing(name: str):
    terms = step_of(name, LABELS["a batch without any known label"])
    assert {float(term.detach()) for term in terms.values()} == {0.0}


# Whole runs.


def table(folder: Path, change: object, train: int = 24, test: int = 8) -> Path:
    """Colours whose label table went through `change`, a function of a data frame of texts."""
    data = write_colours(folder, train, test)
    frame = pd.read_csv(data / "labels.csv", dtype=str, keep_default_na=False)
    change(frame).to_csv(data / "labels.csv", index=False)  # type: ignore[operator]
    return data


def no_present(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(red=frame["red"].replace("1", ""))


def no_absent(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(red=frame["red"].replace("0", ""))


def one_category(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[["image", "split", "red"]]


SCARCE = {"no known present": no_present, "no known absent": no_absent, "one category": one_category}
BRIEF = ["plain", "ssgrl", "hst"]


@pytest.mark.parametrize("scarcity", SCARCE)
@pytest.mark.parametrize("method", BRIEF)
def test_scarce_labels_make_a_model(method: str, scarcity: str, tmp_path: Path):
    data = table(tmp_path / "data", SCARCE[scarcity])
    run = fewtags.train(data, out=tmp_path / "run", **(ONE_EPOCH | {"method": method}))
    found = fewtags.load(run).probabilities([data / "images" / "000.png"])
    assert np.isfinite(found).all()
    assert ((found > 0) & (found < 1)).all()


@pytest.mark.parametrize("method", BRIEF)
def test_one_image_and_batches_of_one(method: str, tmp_path: Path):
    data = write_colours(tmp_path / "data", train=1, test=0, seed=3)
    assert "1" in (text := (data / "labels.csv").read_text().splitlines()[1])
    assert "0" in text.partition("train")[2]
    one = fewtags.train(data, out=tmp_path / "one", **(ONE_EPOCH | {"method": method}))
    assert np.isfinite(fewtags.load(one).probabilities([data / "images" / "000.png"])).all()
    many = write_colours(tmp_path / "many", train=5, test=2, unknown=0.5)
    singly = fewtags.train(many, out=tmp_path / "singly", **(ONE_EPOCH | {"method": method, "batch_size": 1}))
    assert pd.read_csv(singly / "history.csv")["loss/total"].notna().all()


@pytest.mark.parametrize("method", BRIEF)
def test_nothing_known_is_an_error(method: str, tmp_path: Path):
    data = table(tmp_path / "data", lambda frame: frame.assign(red="", green="", blue="", yellow=""))
    with pytest.raises(UserError, match="no training label is known to be present"):
        fewtags.train(data, out=tmp_path / "run", **(ONE_EPOCH | {"method": method}))


def test_the_only_label_held_out_is_an_error_that_says_so(tmp_path: Path):
    data = write_colours(tmp_path / "data", train=1, test=0, seed=3)
    with pytest.raises(UserError, match="holdout"):
        fewtags.train(data, out=tmp_path / "run", **(TINY | {"holdout": 0.999}))


# Numbers that are none.


EXPLODING = ONE_EPOCH | {"method": "ssgrl", "head_lr": 1e30, "clip_norm": 0.0, "epochs": 3, "batch_size": 6}


def test_a_loss_that_is_no_number_names_every_image_and_leaves_no_checkpoint_behind(tmp_path: Path):
    data = write_colours(tmp_path / "data", train=6, test=2)
    with pytest.raises(UserError, match=r"the loss became (nan|inf) on the batch with") as problem:
        fewtags.train(data, out=tmp_path / "run", **EXPLODING)
    assert all(f"images/{row:03d}.png" in str(problem.value) for row in range(6))
    assert "lower head_lr" in str(problem.value)
    for saved in (tmp_path / "run" / "checkpoints").glob("*"):
        assert all(bool(torch.isfinite(tensor).all()) for tensor in load_file(saved).values())


def test_a_gradient_that_is_no_number_names_its_own_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    step = TrainingModule.training_step

    def with_endless_slope(self: TrainingModule, batch: Batch, number: int) -> dict[str, object]:
        outputs = step(self, batch, number)
        if 3 in batch.image_index.tolist():
            weight = next(self.method.parameters())
            outputs["loss"] = (
                outputs["loss"] + (weight - weight.detach()).abs().sqrt().sum()
            )  # 0, its slope is not
        return outputs

    monkeypatch.setattr(TrainingModule, "training_step", with_endless_slope)
    data = write_colours(tmp_path / "data", train=8, test=2)
    settings = ONE_EPOCH | {"method": "plain", "batch_size": 1}
    with pytest.raises(UserError, match=r"the gradient's norm became .* on the batch with images/003\.png:"):
        fewtags.train(data, out=tmp_path / "run", **settings)


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FEWTAGS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("method", ["plain", "hst"])
def test_a_damaged_cache_names_file_and_images(method: str, bad: float, own_cache: Path, tmp_path: Path):
    data = write_colours(tmp_path / "data", train=12, test=4)
    run = fewtags.train(data, out=tmp_path / "run", **(ONE_EPOCH | {"method": method}))
    for file in own_cache.glob("*.npy"):
        maps = np.load(file, mmap_mode="r+")
        maps[2, 0, 0, 0, 0] = bad
        maps.flush()
    with pytest.raises(UserError, match=r"cached features hold .*images/002\.png; delete .*\.npy"):
        fewtags.train(data, out=tmp_path / "again", **(ONE_EPOCH | {"method": method}))
    with pytest.raises(UserError, match=r"cached features hold .*images/014\.png; delete"):
        evaluate(run, str(data))
    unknown = table(tmp_path / "unknown", lambda frame: frame.assign(red=""), 12, 4)
    complete(run, str(unknown), tmp_path / "out", Wanted(precision=None))  # of other images: all is well


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_backbone_that_gives_no_numbers_names_the_images(
    bad: float, own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def spoiled(network: object, batch: torch.Tensor) -> np.ndarray:
        return whole(lambda images: torch.full((len(images), 2, 1, 1), bad), batch)

    whole = cache.features
    monkeypatch.setattr(cache, "features", spoiled)
    data = write_colours(tmp_path / "data", train=3, test=1)
    with pytest.raises(
        UserError, match=r"backbone's features hold .*images/000\.png, images/001\.png, images/002"
    ):
        fewtags.train(data, out=tmp_path / "run", **ONE_EPOCH)


@pytest.mark.parametrize("bad", ["nan", "inf"])
def test_word_vectors_that_are_no_numbers_name_the_word(bad: str, tmp_path: Path):
    data = write_colours(tmp_path / "data", train=12, test=4)
    lines = [f"{word} 0.1 0.2 {bad if word == 'blue' else 0.3}" for word in ("red", "green", "blue", "yellow")]
    (tmp_path / "words.txt").write_text("\n".join(lines) + "\n")
    with pytest.raises(UserError, match=r"words\.txt: the vector of 'blue' has values that are not finite"):
        fewtags.train(
            data, out=tmp_path / "run", words=str(tmp_path / "words.txt"), **(ONE_EPOCH | {"method": "hst"})
        )


def test_only_rows_with_bad_numbers_are_named():
    values = np.zeros((40, 3), np.float16)
    require_finite(values, [], "they", "nothing")
    require_finite(np.full((2, 70000), 60000, np.float16), ["a", "b"], "they", "nothing")  # large is not endless
    values[[5, 7], 1] = np.nan, np.inf
    with pytest.raises(UserError, match=r"they hold .*: image 5, image 7; do this$"):
        require_finite(values, [f"image {row}" for row in range(40)], "they", "do this")


# Clipping.


def test_clipping_is_on_and_logged(tmp_path: Path):
    assert Recipe().clip_norm > 0
    data = write_colours(tmp_path / "data", train=12, test=4)
    often = fewtags.train(data, out=tmp_path / "often", **(ONE_EPOCH | {"clip_norm": 1e-6, "method": "hst"}))
    never = fewtags.train(data, out=tmp_path / "never", **(ONE_EPOCH | {"clip_norm": 1e6, "method": "hst"}))
    off = fewtags.train(data, out=tmp_path / "off", **(ONE_EPOCH | {"clip_norm": 0.0, "method": "hst"}))
    histories = [pd.read_csv(run / "history.csv") for run in (often, never, off)]
    assert [history["gradient/clipped"][0] for history in histories[:2]] == [1.0, 0.0]
    assert all(history["gradient/norm"][0] > 1e-6 for history in histories[:2])
    assert "gradient/clipped" not in histories[2]
