"""What gcn_ml, p_gcn and kggr have in common to be tested for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import fewtags
from fewtags.methods import METHODS, Setting
from fewtags.methods.base import Method
from fewtags.recipe import Recipe
from fewtags.training import finish
from fewtags.training.finish import word_size
from fewtags.training.folder import RunFolder
from tests.conftest import COLOURS, TINY
from tests.methods.test_methods import CATEGORIES, CHANNELS, IMAGES, batch_of, labels_of, make, total

WORD_SIZE = 5
EMPTY = np.zeros((IMAGES, CATEGORIES), np.int8)


def with_words(name: str, words: torch.Tensor, **settings) -> Method:
    recipe = Recipe(**(TINY | {"dropout": 0.0, "first_scores": "undecided"} | settings))
    torch.manual_seed(0)
    labels = torch.from_numpy(labels_of()).float()
    return METHODS[name](Setting(recipe, tuple("abcdef"), CHANNELS, labels, words))


def check_unknown_entries_have_exactly_zero_gradient(name: str) -> None:
    method, batch = make(name), batch_of()
    outputs = method(batch.inputs)
    outputs["logits"].retain_grad()
    method.losses(outputs, batch, None).terms["known"].backward()  # type: ignore[arg-type]
    gradient = outputs["logits"].grad
    assert gradient is not None
    assert (gradient[batch.labels == 0] == 0).all()
    assert (gradient[batch.labels != 0] != 0).all()


def check_nothing_known_breaks_nothing(name: str) -> None:
    method, batch = make(name, labels=EMPTY), batch_of(EMPTY)
    assert all(torch.isfinite(buffer).all() for buffer in method.buffers())
    assert torch.isfinite(method(batch.inputs)["logits"]).all()
    loss = total(method, batch)
    loss.backward()
    assert loss.item() == 0
    assert all(p.grad is None or (p.grad == 0).all() for p in method.parameters())


def check_everything_learns(name: str) -> None:
    """Every parameter has a gradient after a first step (the shortcut's classifiers start at 0)."""
    labels = labels_of(known=1.0)
    method, batch = make(name, labels=labels), batch_of(labels)
    total(method, batch).backward()
    for parameter, values in method.named_parameters():
        assert values.grad is not None, parameter
        assert values.grad.any(), parameter


def check_the_shortcut_has_its_own_learning_rate_and_leads_at_first(name: str) -> None:
    method, without = make(name, shortcut_lr=0.5, head_lr=0.25), make(name, shortcut=False)
    groups = {group.name: group for group in method.parameter_groups()}
    assert [tuple(p.shape) for p in groups["shortcut"].parameters] == [(CATEGORIES, CHANNELS), (CATEGORIES,)]
    assert (groups["shortcut"].lr, groups["head"].lr) == (0.5, 0.25)
    assert sum(len(group.parameters) for group in groups.values()) == len(list(method.parameters()))
    assert not any(group.parameters for group in without.parameter_groups() if group.name == "shortcut")
    inputs = batch_of().inputs
    small, full = (model.eval()(inputs)["logits"].abs().mean() for model in (method, without))
    assert 0 < small < 0.25 * full


def check_dropout_only_while_training(name: str) -> None:
    method, inputs = make(name, dropout=0.5), batch_of().inputs
    assert not torch.equal(method(inputs)["logits"], method(inputs)["logits"])
    method.eval()
    assert torch.equal(method(inputs)["logits"], method(inputs)["logits"])


def check_a_loaded_run_gives_its_own_scores(name: str, colours: Path, folder: Path, given: bool) -> None:
    """The model that was trained and the one of the run folder, with word vectors given or learned."""
    vectors = np.random.default_rng(0).normal(size=(len(COLOURS), WORD_SIZE)).astype(np.float32)
    np.savez(folder / "words.npz", names=np.array(list(COLOURS)), vectors=vectors)
    words = str(folder / "words.npz") if given else None
    run, trained = trained_run_and_method(colours, folder / "run", method=name, known=0.5, words=words, **TINY)
    assert RunFolder(run).labels().word_size == (WORD_SIZE if given else None)
    tagger = fewtags.load(run)
    kept = [value for key, value in tagger.method.state_dict().items() if key.split(".")[-1] == "words"]
    assert [np.array_equal(value, vectors) for value in kept] == [given]
    maps = torch.randn(8, tagger.labels.channels, 4, 4, generator=torch.Generator().manual_seed(1))
    assert torch.equal(tagger.method(maps)["logits"], trained(maps)["logits"])
    assert fewtags.evaluate(run, colours)["mAP"] == pytest.approx(RunFolder(run).metrics()["mAP"], abs=1e-6)


def trained_run_and_method(data: Path, out: Path, **settings) -> tuple[Path, Method]:
    """A run, and the very model that it saved."""
    saved: list[Method] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(finish, "word_size", lambda method: [word_size(method), saved.append(method)][0])
        run = fewtags.train(data, out=out, **settings)
    return run, saved[0].eval()
