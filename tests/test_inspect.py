import io

import numpy as np
import pytest
from PIL import Image
from rich.console import Console

from fewtags.data import open_data
from fewtags.inspect_data import cooccurrence, inspect
from tests.labels.formats.make import pictures, text
from tests.oracles import cooccurrence as oracle


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "pets"
    names = [f"{n}.jpg" for n in range(12)]
    pictures(folder, names)
    lines = [f"{name},{'test' if n == 11 else 'train'},1,{n % 2},{'' if n else 1}" for n, name in enumerate(names)]
    text(folder / "labels.csv", "image,split,dog,cat,very [red] thing\n" + "\n".join(lines))
    return open_data(str(folder))


@pytest.mark.parametrize("known", [0.1, 0.5, 1.0])
def test_cooccurrence_counts_only_what_is_known(known):
    rng = np.random.default_rng(0)
    values = np.where(rng.random((60, 7)) < known, rng.choice([-1, 1], (60, 7)), 0).astype(np.int8)
    np.testing.assert_allclose(cooccurrence(values), oracle.cooccurrence(values.tolist()), equal_nan=True)


def test_nothing_known_is_nan():
    assert np.isnan(cooccurrence(np.zeros((5, 3), np.int8))).all()


def test_prints_counts_frequencies_and_where_the_picture_is(data, tmp_path):
    text_out = io.StringIO()
    path = inspect(data, tmp_path / "new" / "picture.png", Console(file=text_out, width=160))
    shown = text_out.getvalue()
    assert path == tmp_path / "new" / "picture.png"
    assert str(path) in shown
    assert "fewer than 10 known present training labels: cat (5), very [red] thing (1)" in shown
    assert shown.count("very [red] thing") == 2
    row = next(line for line in shown.splitlines() if "cat" in line and "45.5 %" in line)
    assert row.split() == ["cat", "5", "6", "0", "45.5", "%", "1", "fewer", "than", "10"]
    assert min(Image.open(path).size) > 400


def test_the_picture_has_a_place_of_its_own(data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert inspect(data, None, Console(file=io.StringIO())).name == "pets-cooccurrence.png"
    assert (tmp_path / "pets-cooccurrence.png").is_file()
