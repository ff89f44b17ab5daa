"""What a simulation is asked to do."""

from __future__ import annotations

from dataclasses import dataclass

from fewtags.errors import UserError
from fewtags.review.orders import ORDERS


@dataclass(frozen=True)
class Wanted:
    start: float = 0.05
    """Share of the labels that is known before anybody is asked."""
    rounds: int = 5
    answers_per_round: float = 0.05
    """Below 1 a share of all training labels, else a number."""
    orders: tuple[str, ...] = ORDERS
    seeds: tuple[int, ...] = (0,)

    def __post_init__(self) -> None:
        if not 0 < self.start < 1:
            raise UserError(f"--start {self.start:g}: a share of the labels, above 0 and below 1")
        if self.rounds < 1:
            raise UserError(f"--rounds {self.rounds}: at least one")
        if self.answers_per_round <= 0:
            raise UserError(f"--answers-per-round {self.answers_per_round:g}: it lies above 0")
        if self.answers_per_round >= 1 and not float(self.answers_per_round).is_integer():
            raise UserError(
                f"--answers-per-round {self.answers_per_round:g}: a share below 1, or a whole number of answers"
            )

    def answers(self, entries: int) -> int:
        """Questions a round, of so many training labels."""
        share = self.answers_per_round
        return int(share) if share >= 1 else max(1, round(share * entries))


def parse_orders(text: str) -> tuple[str, ...]:
    """`value,random`, each once."""
    orders = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not orders:
        raise UserError(f"--orders: nothing is given; write some of {','.join(ORDERS)}")
    for order in orders:
        if order not in ORDERS:
            raise UserError(f"--orders {order}: it is one of {', '.join(ORDERS)}")
    return orders
