"""Errors for people: what is wrong, where, and what to do about it."""

import re

MOST_PROBLEMS_SHOWN = 20
OF_A_LOADER = re.compile(r"Caught .*^fewtags\.errors\.\w+: ", re.DOTALL | re.MULTILINE)


class UserError(Exception):
    """The user's mistake: the command line prints the message alone and exits with 2."""

    def __init__(self, message: str = ""):
        super().__init__(_without_traceback(message))


class BadImageError(UserError):
    """An image that cannot be read; `--on-bad-image skip` leaves it out."""


def _without_traceback(message: str) -> str:
    """torch raises an error of a loader process again in this one, with its traceback as the message."""
    return OF_A_LOADER.sub("", message, count=1).rstrip("\n") if message.startswith("Caught ") else message


def printable(text: str) -> str:
    """What a terminal or a UTF-8 file can hold: file names need not be valid text."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


class Problems:
    """Collects what is wrong with an input, so that one run of a command reports all of it."""

    def __init__(self, headline: str):
        self.headline = headline
        self.found: list[str] = []

    def add(self, message: str) -> None:
        self.found.append(message)

    def raise_if_any(self) -> None:
        if self.found:
            raise UserError(self.message())

    def message(self) -> str:
        shown = self.found[:MOST_PROBLEMS_SHOWN]
        if len(shown) == 1 and len(self.found) == 1:
            return f"{self.headline}: {shown[0]}"
        lines = [f"{self.headline}: {len(self.found)} problems", *(f"  - {line}" for line in shown)]
        if len(self.found) > len(shown):
            lines.append(f"  ... and {len(self.found) - len(shown)} more")
        return "\n".join(lines)
