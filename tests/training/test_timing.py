import pytest

from fewtags.errors import UserError
from fewtags.training.timing import Expected, duration, epochs_within, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90s", 90), ("30m", 1800), ("2h", 7200), ("1h30m", 5400)]
)
def test_durations_are_read(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["soon", "", "0m", "m", "5 days"])
def test_other_texts_are_refused(text):
    with pytest.raises(UserError, match="no duration"):
        parse_duration(text)


def test_durations_are_written_for_people():
    assert [duration(s) for s in (4.2, 45, 200, 7500)] == ["4.2 s", "45 s", "3 min 20 s", "2 h 5 min"]


def test_as_many_epochs_as_fit():
    expected = Expected(seconds_per_epoch=10, peak_gib=1)
    assert epochs_within(35, expected, wanted=20) == 3
    assert epochs_within(1000, expected, wanted=20) == 20
    with pytest.raises(UserError, match="one epoch takes about 10 s"):
        epochs_within(5, expected, wanted=20)
