"""What a cell of a label file means. It differs between data sets, so it is told, never guessed."""

from __future__ import annotations

from dataclasses import dataclass

from fewtags.errors import UserError
from fewtags.labels.table import ABSENT, PRESENT, UNKNOWN

VALUES = {"present": PRESENT, "absent": ABSENT, "unknown": UNKNOWN}
DEFAULT = "present=1,absent=0,unknown="
HOW = f"write it as {DEFAULT} (several tokens of one meaning: unknown=|-1)"


@dataclass(frozen=True)
class Tokens:
    """The cells that mean each of the three values; the first of each is the one written."""

    present: tuple[str, ...] = ("1",)
    absent: tuple[str, ...] = ("0",)
    unknown: tuple[str, ...] = ("",)

    @classmethod
    def parse(cls, text: str | None) -> Tokens:
        """`present=1,absent=0,unknown=`: all three, each with one token or several separated by `|`."""
        given: dict[str, tuple[str, ...]] = {}
        for part in (text if text is not None else DEFAULT).split(","):
            name, equals, cells = part.partition("=")
            if name.strip() not in VALUES or not equals or name.strip() in given:
                raise UserError(f"--tokens {text}: {part!r} is not understood; {HOW}")
            given[name.strip()] = tuple(cell.strip() for cell in cells.split("|"))
        if missing := [name for name in VALUES if name not in given]:
            raise UserError(f"--tokens {text}: {', '.join(missing)} is not given; {HOW}")
        tokens = cls(**given)
        tokens._check_distinct(text)
        return tokens

    def _check_distinct(self, text: str | None) -> None:
        cells = [*self.present, *self.absent, *self.unknown]
        for cell in cells:
            if cells.count(cell) > 1:
                raise UserError(f"--tokens {text}: {cell!r} has two meanings; {HOW}")

    @property
    def meaning(self) -> dict[str, int]:
        """Cell → value."""
        return {cell: value for name, value in VALUES.items() for cell in getattr(self, name)}

    @property
    def written(self) -> dict[int, str]:
        """Value → cell."""
        return {value: getattr(self, name)[0] for name, value in VALUES.items()}

    def __str__(self) -> str:
        return ",".join(f"{name}={'|'.join(getattr(self, name))}" for name in VALUES)
