import pytest

from fewtags.errors import UserError
from fewtags.labels.split import seeded_split


@pytest.mark.parametrize(("count", "train"), [(0, 0), (1, 1), (2, 2), (5, 4), (10, 8), (1003, 802)])
def test_four_fifths_train(count, train):
    splits = seeded_split(count, seed=0)
    assert len(splits) == count
    assert splits.count("train") == train
    assert splits.count("test") == count - train


def test_the_seed_decides():
    assert seeded_split(100, 3) == seeded_split(100, 3)
    assert seeded_split(100, 3) != seeded_split(100, 4)
    assert seeded_split(100, 3)[:80] != ("train",) * 80


def test_a_negative_seed_is_said():
    with pytest.raises(UserError, match="seed=-2: a seed is 0 or more"):
        seeded_split(10, -2)
