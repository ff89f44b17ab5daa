"""Times as people write and read them."""

from __future__ import annotations

from fewtags.errors import UserError

UNITS = {"w": 604800, "d": 86400, "h": 3600, "m": 60, "s": 1}


def parse_duration(text: str) -> float:
    """Seconds of `90`, `90s`, `30m`, `2h`, `1h30m`, `30d`, `2w`."""
    seconds, number = 0.0, ""
    for character in text.strip().lower():
        if character in UNITS and number:
            seconds, number = seconds + _number(number, text) * UNITS[character], ""
        elif character.isdecimal() or character == ".":
            number += character
        else:
            raise _no_duration(text)
    seconds += _number(number or "0", text)
    if seconds <= 0:
        raise _no_duration(text)
    return seconds


def _number(digits: str, text: str) -> float:
    try:
        return float(digits)
    except ValueError as problem:  # 1.2.3
        raise _no_duration(text) from problem


def _no_duration(text: str) -> UserError:
    return UserError(f"{text!r} is no duration: write 90s, 30m, 2h, 1h30m or 30d")


def duration(seconds: float | None) -> str:
    """`4.2 s`, `45 s`, `3 min 20 s`, `2 h 05 min`; `–` for None."""
    if seconds is None:
        return "–"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def days(seconds: float) -> str:
    """How long ago: `today`, `1 day ago`, `40 days ago`."""
    count = int(seconds // UNITS["d"])
    return "today" if count < 1 else f"{count} day{'s' * (count > 1)} ago"
