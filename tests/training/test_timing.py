import pytest

from fewtags.errors import UserError
from fewtags.training.timing import Expected, epochs_within


def test_as_many_epochs_as_fit():
    expected = Expected(seconds_per_epoch=10, peak_gib=1)
    assert epochs_within(35, expected, wanted=20) == 3
    assert epochs_within(1000, expected, wanted=20) == 20
    with pytest.raises(UserError, match="one epoch takes about 10 s"):
        epochs_within(5, expected, wanted=20)
