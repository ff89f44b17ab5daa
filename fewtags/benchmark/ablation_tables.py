"""Methods with something changed: the paper's ablations of HST, fixed thresholds, prototype counts, our departures
undone, and single settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from fewtags.benchmark import paper
from fewtags.benchmark.grid import (
    SAME,
    Setting,
    average,
    known_shares,
    main_settings,
    shared_seeds,
    shared_shares,
)
from fewtags.benchmark.score_table import METRICS, score_table
from fewtags.benchmark.statistics import NESTED, Comparison, compare, holm, paired_differences
from fewtags.benchmark.table import (
    COMPARISON_COLUMNS,
    Cell,
    Table,
    column_of,
    comparison_cells,
    figure,
    name,
    percent,
    rows_from,
    seeds_note,
    shares,
    signed,
    without_empty_columns,
)
from fewtags.methods.variants import VARIANTS, summary

BLOCKS = (*SAME, "known", "seed")
BASE, WHOLE = "ssgrl", "hst"


def variants_of(setting: Setting, group: str) -> list[str]:
    """The variants of a group that have rows, in the group's order."""
    done = set(setting.rows["method"])
    return [name for name, about in VARIANTS.items() if about.group == group and name in done]


def paired(setting: Setting, methods: Sequence[str], at: Sequence[float]) -> tuple[Setting, str]:
    """The seeds alone that all of these methods have at all of these shares, if there are any; and words for them.

    Seeds differ by more than variants do, so means over different ones cannot be compared.
    """
    seeds = shared_seeds(setting.rows, methods, at)
    if not seeds:  # then "(1 of 2)" shall count the seeds of these methods, not those that others have
        return replace(setting, rows=setting.rows[setting.rows["method"].isin(methods)]), ""
    if seeds == setting.seeds:
        return setting, ""
    kept = replace(setting, rows=setting.rows[setting.rows["seed"].isin(seeds)])
    return kept, f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))} alone, which all of these have"


def ablation(results: pd.DataFrame) -> list[Table]:
    """The paper's five ablation tables, each with our averages and theirs."""
    tables = [_ablation(setting, part) for setting in main_settings(results) for part in paper.ABLATIONS]
    return [table for table in tables if table is not None]


def _ablation(setting: Setting, part: str) -> Table | None:
    """None until one of its own methods has rows, and another one to compare it with."""
    layout = paper.ablations()
    layout = layout[(layout["table"] == part) & (layout["dataset"] == "MS-COCO")]
    methods = list(layout["method"])
    done = [method for method in methods if method in set(setting.rows["method"])]
    shared = shared_shares(setting.rows, done)
    if len(done) < 2 or not shared or set(done) <= {BASE, WHOLE}:
        return None
    setting, seeds = paired(setting, done, shared)
    ours = [column_of(_averages(setting, methods, shared, metric), len(setting.seeds)) for metric in METRICS]
    theirs = published_columns(setting, part, methods)
    body = rows_from(
        [[name(method) for method in methods], [Cell(text) for text in layout["label"]], *ours, *theirs]
    )
    columns = ("method", "in the paper", *METRICS, *(f"paper {metric}" for metric in METRICS if theirs))
    over = f"Ours: {'average over ' if len(shared) > 1 else 'at '}{shares(shared)} known{seeds and ', ' + seeds}."
    beside = paper_notes(setting, "average over its nine known shares")
    notes = (*seeds_note(setting.seeds, body), *beside)
    return Table(f"{paper.ABLATIONS[part]}, {setting.title}", columns, body, notes, over)


def _averages(setting: Setting, methods: Sequence[str], shared: Sequence[float], metric: str) -> list:
    return [average(setting.rows, method, shared, metric) for method in methods]


def published_columns(setting: Setting, part: str, methods: Sequence[str]) -> list[list[Cell]]:
    """mAP, OF1, CF1 as published for the data set, [] when it is none of the paper's."""
    dataset = paper.dataset_of(setting.data)
    if dataset is None:
        return []
    table = paper.ablations()
    table = table[(table["table"] == part) & (table["dataset"] == dataset.name)].set_index("method")
    return [[Cell(figure(table[metric].get(method))) for method in methods] for metric in METRICS]


def paper_notes(setting: Setting, what: str) -> list[str]:
    """What the published figures are, and why their level is not to be compared with ours."""
    dataset = paper.dataset_of(setting.data)
    if dataset is None:
        return []
    reasons = paper.why_not_comparable(dataset, setting.data, setting.images, setting.backbone)
    stands = f"Paper: {dataset.name}, {what}"
    return (
        [f"{stands}. Not comparable in level ({'; '.join(reasons)}): only the order is."]
        if reasons
        else [f"{stands}."]
    )


def thresholds(results: pd.DataFrame) -> list[Table]:
    """One fixed threshold for both modules against learned ones."""
    return _fixed(results, "threshold", "Fixed thresholds, both modules", published=True)


def thresholds_apart(results: pd.DataFrame) -> list[Table]:
    """A fixed threshold for one module, the other's learned."""
    return [
        *_fixed(results, "threshold_intra", "Fixed threshold within an image, learned across images"),
        *_fixed(results, "threshold_cross", "Fixed threshold across images, learned within an image"),
    ]


def _fixed(results: pd.DataFrame, group: str, title: str, published: bool = False) -> list[Table]:
    tables = []
    for setting in main_settings(results):
        fixed = variants_of(setting, group)
        if fixed:
            lines = [(Cell(method.removeprefix(f"hst.{group}.")), method) for method in fixed]
            if WHOLE in setting.methods():
                lines.append((Cell("learned"), WHOLE))
            at = known_shares(setting.rows, fixed)
            table = _paired_scores(setting, lines, f"{title}: mAP, {setting.title}", "threshold", at)
            tables.append(_with_published(table, setting, lines, at) if published else table)
    return tables


def _paired_scores(
    setting: Setting, lines: Sequence[tuple[Cell, str]], title: str, first: str, at: Sequence[float]
) -> Table:
    setting, seeds = paired(setting, [method for _, method in lines], at)
    table = score_table(setting, lines, title, first=first, at=at)
    return replace(table, scope=f"Ours: {seeds}.") if seeds else table


def _with_published(
    table: Table, setting: Setting, lines: Sequence[tuple[Cell, str]], at: Sequence[float]
) -> Table:
    """The same with the paper's mean over the same known shares as a last column."""
    dataset = paper.dataset_of(setting.data)
    known = paper.thresholds().query("dataset == @dataset.name and known in @at") if dataset is not None else None
    if known is None or set(known["known"]) != set(at):
        return table
    means = known.groupby("method")["mAP"].mean()
    rows = tuple((*row, Cell(figure(means.get(m)))) for row, (_, m) in zip(table.rows, lines, strict=True))
    notes = (*table.notes, *paper_notes(setting, f"mean over {shares(at)} known"))
    return replace(table, columns=(*table.columns, "paper"), rows=rows, notes=notes)


def prototypes(results: pd.DataFrame) -> list[Table]:
    """Transfer across images alone with K prototypes a category."""
    tables = []
    for setting in main_settings(results):
        counts = variants_of(setting, "prototypes")
        if counts:
            lines = [(Cell(method.rpartition(".k")[2]), method) for method in counts]
            at = known_shares(setting.rows, counts)
            table = _paired_scores(setting, lines, f"Prototypes per category: mAP, {setting.title}", "K", at)
            note = "The paper shows its own only as a figure: rising from K = 1 to 10, lower at 20."
            tables.append(replace(table, notes=(*table.notes, note)))
    return tables


def departure_comparisons(setting: Setting) -> list[Comparison]:
    """Each departure - hst, with Holm's correction over all of them."""
    return holm([compare(setting.rows, m, WHOLE, BLOCKS) for m in variants_of(setting, "departure")])


def departures(results: pd.DataFrame) -> list[Table]:
    """What each choice of the paper or of the released code costs, put into our hst one at a time."""
    made = [(setting, departure_comparisons(setting)) for setting in main_settings(results)]
    return [_departures(setting, found) for setting, found in made if any(c.blocks for c in found)]


def _departures(setting: Setting, found: Sequence[Comparison]) -> Table:
    note = "mAP of the variant minus mAP of hst in the same blocks (seed × known share). " + NESTED
    return _differences(setting, found, "Departures", note)


def settings(results: pd.DataFrame) -> list[Table]:
    """Methods with one setting changed by hand, such as `asl.shortcut_lr.0.0003`, beside themselves."""
    made = [(setting, setting_comparisons(setting)) for setting in main_settings(results)]
    note = "mAP of the variant minus mAP of its method in the same blocks (seed × known share). " + NESTED
    found = [(setting, [c for c in compared if c.blocks]) for setting, compared in made]
    return [_differences(setting, compared, "Settings changed", note) for setting, compared in found if compared]


def setting_comparisons(setting: Setting) -> list[Comparison]:
    """Each variant that is no named one - its method, with Holm's correction over all of them."""
    changed = [method for method in setting.methods(True) if "." in method and method not in VARIANTS]
    return holm([compare(setting.rows, m, m.partition(".")[0], BLOCKS) for m in changed])


def _differences(setting: Setting, found: Sequence[Comparison], title: str, note: str) -> Table:
    """Each variant's differences at every known share, and together."""
    at = known_shares(setting.rows, [c.first for c in found])
    rows = [
        (name(c.first), Cell(summary(c.first)), *_per_share(setting, c, at), *comparison_cells(c, digits=2))
        for c in found
    ]
    columns = ("variant", "what", *map(percent, at), *COMPARISON_COLUMNS)
    return without_empty_columns(Table(f"{title}, {setting.title}", columns, tuple(rows), (note,)))


def _per_share(setting: Setting, compared: Comparison, at: Sequence[float]) -> list[Cell]:
    differences = paired_differences(setting.rows, compared.first, compared.second, BLOCKS)
    per_share = differences.groupby(level="known").mean()
    return [Cell(signed(per_share.get(known), digits=2)) for known in at]
