import pytest

from fewtags.durations import days, duration, parse_duration
from fewtags.errors import UserError


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("30m", 1800), ("2h", 7200), ("1h30m", 5400), ("30d", 2592000), ("1w", 604800)],
)
def test_durations_are_read(text: str, seconds: float):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "0", "h", "-3m", "1.2.3s", "²h"])
def test_what_is_no_duration_is_said(text: str):
    with pytest.raises(UserError, match="no duration"):
        parse_duration(text)


def test_durations_are_written_for_people():
    shown = {4.2: "4.2 s", 9.96: "10 s", 45: "45 s", 59.6: "1 min 00 s", 200: "3 min 20 s", 7500: "2 h 05 min"}
    assert {seconds: duration(seconds) for seconds in shown} == shown
    assert duration(None) == "–"


def test_ages():
    assert [days(s) for s in (0, 86399, 86400, 40 * 86400)] == ["today", "today", "1 day ago", "40 days ago"]
