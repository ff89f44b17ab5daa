"""Made-up rows of a simulation."""

from __future__ import annotations

import pandas as pd

from fewtags.simulation.results import collected


def made_up(seeds: tuple[int, ...] = (0, 1), score: float | None = 40.0) -> pd.DataFrame:
    """Figures of a start and two rounds of `random`; seed 1 is ten points better."""
    common = {"answers": 0, "asked": 0.0, "presents_found": 0, "known": 0.1, "label_accuracy": 80.0}
    found = []
    for seed in seeds:
        at = None if score is None else score + 10 * seed
        found.append(common | {"order": "start", "seed": seed, "round": 0, "mAP": at})
        found.append(common | {"order": "full_labels", "seed": seed, "round": 0, "mAP": at and at + 15})
        for number in (1, 2):
            row = {"order": "random", "seed": seed, "round": number, "mAP": at and at + 5 * number}
            found.append(common | row | {"answers": 50 * number, "asked": 0.1 * number, "presents_found": 20})
    return collected(found, ("random",))
