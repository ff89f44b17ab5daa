"""What a benchmark found, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from fewtags.benchmark.comparison_tables import against, order_agreement
from fewtags.benchmark.grid import Setting, average, main_settings, missing, shared_shares, upper_bound
from fewtags.benchmark.paper import dataset_of
from fewtags.benchmark.statistics import FEWEST_BLOCKS, Comparison
from fewtags.benchmark.table import percent, shares

MOST_NAMED = 5
BEST_NAMED = 3


def headline(results: pd.DataFrame) -> str:
    """Whom the method in question is ahead of, behind, or not told apart from."""
    settings = main_settings(results)
    methods = {method for setting in settings for method in setting.methods()}
    if not methods:
        return "No method has been run yet."
    subject = subject_of(results)
    found = against(results, subject)
    if not found:
        return f"{subject} has been run; there is nothing to compare it with yet."
    if not any(comparison.decidable for comparison in found):
        most = max(comparison.blocks for comparison in found)
        return (
            f"Not decidable yet: {subject} shares {counted(most, 'block')} with other methods, "
            f"and {FEWEST_BLOCKS} are needed."
        )
    return _verdicts(subject, found)


def subject_of(results: pd.DataFrame) -> str:
    """hst, or else the method that is ahead on the first data set."""
    setting = main_settings(results)[0]
    return "hst" if "hst" in setting.methods() or not setting.methods() else ranked(setting)[0]


def _verdicts(subject: str, found: Sequence[Comparison]) -> str:
    parts = [
        f"{said} {among([c.second for c in found if c.verdict == verdict], len(found))}"
        for verdict, said in (("ahead", "is ahead of"), ("behind", "is behind"))
        if any(c.verdict == verdict for c in found)
    ]
    decided = [c for c in found if c.decidable]
    level = [c.second for c in decided if c.verdict not in ("ahead", "behind")]
    unsure = [c.second for c in found if not c.decidable]
    rest = f"; {among(unsure, len(found))}: not decidable yet" if unsure else ""
    if not parts:
        return f"No difference is shown between {subject} and {among(level, len(found))}{rest}."
    shown = f"; no difference is shown to {among(level, len(found))}" if level else ""
    return f"{subject} " + " and ".join(parts) + shown + rest + "."


def among(names: Sequence[str], of: int) -> str:
    """a, b and c; when they are many, 9 of 14 methods."""
    if len(names) > MOST_NAMED:
        return f"all {of} other methods" if len(names) == of else f"{len(names)} of {of} methods"
    return listed(names)


def listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + f" and {names[-1]}"


def counted(number: int, thing: str) -> str:
    return f"{number} {thing}" + ("" if number == 1 else "s")


def ranked(setting: Setting, metric: str = "mAP") -> list[str]:
    """Its methods, best first on the average over shared known shares; without any, in the usual order."""
    methods = setting.methods()
    shared = shared_shares(setting.rows, methods, metric)
    scores = {method: average(setting.rows, method, shared, metric) for method in methods}
    return sorted(methods, key=lambda method: -(found.mean if (found := scores[method]) else float("-inf")))


def sentences(results: pd.DataFrame) -> list[str]:
    """What stands below the headline, for each data set."""
    said = []
    for setting in main_settings(results):
        said += [leaders(setting), order_sentence(setting), missing_sentence(setting)]
    return [sentence for sentence in said if sentence]


def leaders(setting: Setting) -> str:
    """The best of a data set, and the upper bound. Seeds differ: a mean over fewer than others have is no rank."""
    shared = shared_shares(setting.rows, setting.methods())
    if not shared or len(setting.methods()) < 2:
        return ""
    scores = {method: average(setting.rows, method, shared) for method in ranked(setting)}
    most = max((score.seeds for score in scores.values() if score), default=0)
    best = [f"{method} {score.mean:.1f}" for method, score in scores.items() if score and score.seeds == most]
    named = listed(best[:BEST_NAMED] or ["none"])
    bound = upper_bound(setting.rows)
    over = f"on average over {shares(shared)} known" if len(shared) > 1 else f"with {percent(shared[0])} known"
    all_labels = f"; with all labels known {bound.mean:.1f}" if bound else ""
    return f"{setting.data}: the highest mAP {over}: {named}{all_labels}."


def order_sentence(setting: Setting) -> str:
    dataset = dataset_of(setting.data)
    found = order_agreement(setting) if dataset else None
    if dataset is None or found is None or found.kendall is None or found.kendall != found.kendall:
        return ""
    tau = f"{found.kendall:.2f}".replace("-", "−")
    return (
        f"The order of {found.methods} methods agrees with the paper's on {dataset.name} to Kendall's τ = {tau} "
        "(1 the same, 0 unrelated)."
    )


def missing_sentence(setting: Setting) -> str:
    cells = sum(len(seeds) for gaps in missing(setting).values() for _, seeds in gaps)
    return (
        f"{counted(cells, 'cell')} of the sweep {'is' if cells == 1 else 'are'} missing; see the end."
        if cells
        else ""
    )


def missing_lines(setting: Setting) -> list[tuple[str, str]]:
    """method, and at which known shares which seeds are missing."""
    return [
        (method, "; ".join(f"{percent(share)}: seed {', '.join(map(str, seeds))}" for share, seeds in gaps))
        for method, gaps in missing(setting).items()
    ]
