"""What `fewtags simulate` prints in the end."""

from __future__ import annotations

import pandas as pd
from rich.console import Group
from rich.table import Table
from rich.text import Text

from fewtags.report.words import count, percent, points
from fewtags.simulation.results import headline, orders_in, reached


def simulation_summary(rows: pd.DataFrame) -> Group:
    """A line per order, and the sentence about the usual one."""
    ends = [reached(rows, order) for order in orders_in(rows)]
    table = Table("order")
    for name in ("answers", "known", "mAP", "of full", "labels right", "answers per present"):
        table.add_column(name, justify="right")
    for end in ends:
        of_full = "–" if end.share is None else percent(end.share)
        scores = (f"{points(end.start)} → {points(end.mAP)}", of_full)
        right = f"{points(end.start_accuracy)} → {points(end.accuracy)} %"
        cells = (count(end.answers), percent(end.known), *scores, right, points(end.answers_per_present))
        table.add_row(end.order, *cells)
    return Group(table, Text(headline(ends)))
