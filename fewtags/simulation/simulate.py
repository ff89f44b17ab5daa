"""All rounds of a simulation, into one folder; the same command goes on where it was stopped.

simulation.csv · simulation.html · simulation.json (its settings) · runs/seed-S/{start,full_labels,ORDER-ROUND}/
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from fewtags.benchmark.recipes import differences, portable, settled
from fewtags.data import Data, summary
from fewtags.durations import duration
from fewtags.errors import UserError
from fewtags.files import write_text
from fewtags.locks import alone_in
from fewtags.methods.variants import definition, method_class
from fewtags.recipe import Recipe
from fewtags.report.words import percent, points
from fewtags.simulation.page import simulation_page
from fewtags.simulation.results import collected, write_results
from fewtags.simulation.rounds import FULL, START, Player, Round, read_figures
from fewtags.simulation.truth import Known, Truth, open_truth
from fewtags.simulation.wanted import Wanted
from fewtags.training.prepare import choose_device, make_backbone, prepare_inputs, prepare_labels

SETTINGS = "simulation.json"


@dataclass(frozen=True)
class Outcome:
    rows: pd.DataFrame
    settings: dict[str, Any]
    page: Path


def simulate(
    data: str,
    recipe: Recipe,
    out: str | Path,
    wanted: Wanted | None = None,
    *,
    tokens: str | None = None,
    keep_runs: bool = False,
    console: Console | None = None,
) -> Outcome:
    """Play every round that is not finished yet in the folder `out`."""
    wanted, console, out = wanted or Wanted(), console or Console(quiet=True), Path(out)
    method_class(recipe.method)  # says what is close to an unknown name
    base = settled(recipe).replace(known=1.0)  # what is hidden is `start`'s to say
    truth = open_truth(data, base, tokens)
    settings = settings_of(truth, base, wanted)
    with alone_in(out, "simulate"):
        check_same(out, settings)
        write_text(out / SETTINGS, json.dumps(settings, indent=2, ensure_ascii=False))
        console.print(summary(truth.data))
        cache_features(truth.to_train(truth.all()), base, console)
        player = Player(truth, base, out / "runs", settings["answers_per_round"], keep_runs)
        _Simulation(player, wanted, out, console).run()
        rows = write_results(out, collected(read_figures(player.folder), wanted.orders))
        return Outcome(rows, settings, simulation_page(out, rows, settings))


def settings_of(truth: Truth, recipe: Recipe, wanted: Wanted) -> dict[str, Any]:
    """What decides the rows. Rounds, orders and seeds are not in it: they can be added."""
    return {
        "data": truth.data.name,
        "labels": truth.fingerprint(),
        "images": len(truth.train),
        "test_images": len(truth.test),
        "categories": len(truth.train.categories),
        "start": wanted.start,
        "answers_per_round": wanted.answers(truth.entries),
        "recipe": portable(recipe).replace(seed=0).model_dump(mode="json"),
    }


def check_same(out: Path, settings: dict[str, Any]) -> None:
    """Rounds made with other settings must not stand beside new ones."""
    if not (out / SETTINGS).is_file():
        return
    stored = json.loads((out / SETTINGS).read_text(encoding="utf-8"))
    shown = ("data", "labels", "start", "answers_per_round")
    changed = [
        f"{name}: {stored.get(name)} → {settings[name]}" for name in shown if stored.get(name) != settings[name]
    ]
    old, new = (Recipe.model_validate(part["recipe"]) for part in (stored, settings))
    if changed := changed + differences(old, new):
        raise UserError(
            f"{out}: it was begun with other settings ({'; '.join(changed)}): choose another --out, or take the "
            "settings back"
        )


def cache_features(data: Data, recipe: Recipe, console: Console) -> None:
    """Features of a frozen backbone, once and with a bar, before the first round needs them."""
    if recipe.caches:
        device = choose_device(recipe.device)
        full = recipe.replace(**definition(recipe.method))
        prepare_inputs(data, prepare_labels(data, full), make_backbone(full).to(device), device, False, console)


class _Simulation:
    """The playing of rounds, told line by line."""

    def __init__(self, player: Player, wanted: Wanted, out: Path, console: Console):
        self.player, self.wanted, self.out, self.console = player, wanted, out, console
        self.total = len(wanted.seeds) * (2 + len(wanted.orders) * wanted.rounds)
        self.ended = 0
        shown = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self.bar = Progress(*shown, console=console, transient=True, disable=not console.is_terminal)
        self.task = self.bar.add_task("", total=self.total)

    def run(self) -> None:
        with self.bar:
            for seed in self.wanted.seeds:
                start = self.player.truth.start(self.wanted.start, seed)
                self._step(Round(seed, FULL), self.player.truth.all())
                self._step(Round(seed, START), start)
                for order in self.wanted.orders:
                    self._follow(order, seed, start)

    def _follow(self, order: str, seed: int, known: Known) -> None:
        """Ask, answer, retrain, repeat; until all is asked."""
        before = Round(seed, START)
        for number in range(1, self.wanted.rounds + 1):
            rows, categories = self.player.asked_after(before, order)
            if not len(rows):
                self.ended += self.wanted.rounds - number + 1
                return
            known = self.player.truth.answer(known, rows, categories)
            before = Round(seed, order, number)
            self._step(before, known)

    def _step(self, which: Round, known: Known) -> None:
        self.bar.update(self.task, description=str(which))
        self.ended += 1
        if not self.player.is_done(which):
            started = time.perf_counter()
            figures = self.player.play(which, known)
            self._say(which, figures, time.perf_counter() - started)
            write_results(self.out, collected(read_figures(self.player.folder), self.wanted.orders))
        self.bar.update(self.task, completed=self.ended)

    def _say(self, which: Round, figures: dict[str, Any], seconds: float) -> None:
        parts = [f"[{self.ended}/{self.total}] {which}", f"{percent(figures['known'])} known"]
        parts.append(f"mAP {points(figures['mAP'])}")
        if figures.get("label_accuracy") is not None:
            parts.append(f"labels right {figures['label_accuracy']:.1f} %")
        line = "  ".join([*parts, duration(seconds)])
        self.console.print(line, markup=False, highlight=False, soft_wrap=True)
