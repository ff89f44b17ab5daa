"""Errors for people: what is wrong, where, and what to do about it."""

MOST_PROBLEMS_SHOWN = 20


class UserError(Exception):
    """The user's mistake: the command line prints the message alone and exits with 2."""


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
