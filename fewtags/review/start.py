"""From the command line's words to a running page."""

from __future__ import annotations

import socket
import threading
import webbrowser
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console

from fewtags.data import Data, open_for
from fewtags.errors import UserError
from fewtags.labels.formats import folder
from fewtags.labels.formats.tokens import Tokens
from fewtags.labels.table import HUMAN, LabelTable
from fewtags.review.decisions import Decisions, standing
from fewtags.review.export import fill_audit, how_to_train, known_table, with_answers, with_completed, write_labels
from fewtags.review.index import Names, open_index
from fewtags.review.orders import ORDERS
from fewtags.review.schemas import Exported
from fewtags.review.security import SLOWEST_BODY, Policy

if TYPE_CHECKING:
    from fewtags.review.app import Parts

SUGGESTIONS = "suggestions.parquet"
GRACE = 5
"""Seconds after which a request that has not arrived in time, and was told so, loses its connection."""


@dataclass(frozen=True)
class Place:
    """Whose suggestions, and where everything is."""

    run: Path
    data: Data
    known: LabelTable
    """What the run knew, without any answer."""
    suggestions: Path
    db: Path
    tokens: str | None = None

    def export(self, file: Path | None = None) -> Exported:
        """Write the labels with all answers in them; the default file is beside the answers."""
        table = self.labels()
        written = write_labels(table, file or self.db.with_name("reviewed.csv"), self.tokens)
        fill_audit(self.suggestions, standing(self.db))
        human = int((np.asarray(table.source) == HUMAN).sum())
        return Exported(file=str(written), human=human, train=how_to_train(self.data, written, self.tokens))

    def labels(self) -> LabelTable:
        """What was known, what `fewtags complete` filled in, and over it what people answered."""
        completed = with_completed(self.known, self.suggestions.with_name(folder.CSV_NAME))
        return with_answers(completed, standing(self.db))

    def labels_csv(self) -> str:
        return folder.csv_text(folder.label_columns(self.labels(), Tokens.parse(self.tokens)))


def find_place(
    run: Path, data: str, suggestions: Path | None, db: Path | None, tokens: str | None, console: Console
) -> Place:
    from fewtags.training.folder import RunFolder

    recipe = RunFolder(run).recipe()
    opened = open_for(recipe, data, tokens)
    known = opened.table
    if recipe.known < 1:
        from fewtags.completion.known import same_data

        if same_data(data, RunFolder(run).labels().data):
            known = known_table(known, recipe)
    file = suggestions_file(run, suggestions) or make_suggestions(run, data, tokens, console)
    return Place(run, opened, opened.in_whole(known), file, db or file.with_name("review.sqlite"), tokens)


def suggestions_file(run: Path, given: Path | None) -> Path | None:
    """The file named, the one in the folder named, or the newest below the run; None: there is none yet."""
    if given is None:
        found = sorted(run.glob(f"**/{SUGGESTIONS}"), key=lambda path: path.stat().st_mtime)
        return found[-1] if found else None
    file = given / SUGGESTIONS if given.is_dir() else given
    if not file.is_file():
        raise UserError(f"--suggestions {given}: there is no such file; `fewtags complete` writes it")
    return file


def make_suggestions(run: Path, data: str, tokens: str | None, console: Console) -> Path:
    from fewtags.completion.complete import Wanted, complete

    out = run / "suggestions"
    console.print(f"No suggestions yet: making them, as `fewtags complete {run} {data} --out {out}` does")
    complete(run, data, out, Wanted(tokens=tokens), console)
    return out / SUGGESTIONS


def export(place: Place, file: Path, console: Console) -> None:
    """`fewtags review RUN DATA --export FILE`"""
    if not place.db.is_file():
        raise UserError(f"{place.db}: nothing is answered yet")
    done = place.export(file)
    answered = "1 label" if done.human == 1 else f"{done.human:,} labels"
    console.print(f"{done.file}: {answered} answered by people", soft_wrap=True, highlight=False)
    console.print(f"To train on it: {done.train}", soft_wrap=True, highlight=False)


def serve(place: Place, order: str, policy: Policy, open_page: bool, console: Console) -> None:
    """Answer until interrupted."""
    import uvicorn

    from fewtags.review.app import create_app
    from fewtags.slow_clients import MOST_CONNECTIONS, protocol_with_deadline

    if order not in ORDERS:
        raise UserError(f"--order {order}: it is one of {', '.join(ORDERS)}")
    listener = _listen(policy)
    parts = make_parts(place, order, console)
    app = create_app(parts, policy)
    address = page_address(policy)
    console.print(f"Suggestions {place.suggestions}", soft_wrap=True, highlight=False)
    console.print(f"Review at {address}  (Ctrl+C ends it; every answer is kept at once)", soft_wrap=True)
    threading.Thread(target=parts.attention.warm_up, daemon=True).start()
    if open_page:
        threading.Timer(0.5, webbrowser.open, [address]).start()
    # Requests are not logged: the first one carries the token.
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="off",
        http=protocol_with_deadline(SLOWEST_BODY + GRACE),
        limit_concurrency=MOST_CONNECTIONS,
    )
    try:
        uvicorn.Server(config).run(sockets=[listener])
    finally:
        parts.review.decisions.close()


def make_parts(place: Place, order: str, console: Console) -> Parts:
    from fewtags.images.cache import cache_folder
    from fewtags.review.app import Parts
    from fewtags.review.attention import AttentionMaps
    from fewtags.review.images import Pictures
    from fewtags.review.session import Review

    table, source = place.data.table, place.data.images
    names = Names(table.images, table.categories, _known_present(place.known))
    with console.status("Reading the suggestions"):
        index = open_index(place.suggestions, names, cache_folder())

    return Parts(
        review=Review(index, names, Decisions(place.db)),
        pictures=Pictures(source, table.images),
        attention=AttentionMaps(place.run, source, table.images, table.categories),
        export=place.export,
        labels_csv=place.labels_csv,
        order=order,
        data=place.data.name,
        run=place.run.name,
        suggestions=str(place.suggestions),
    )


def _known_present(known: LabelTable) -> np.ndarray:
    return (known.split("train").values == 1).sum(axis=0)


def page_address(policy: Policy) -> str:
    host = "127.0.0.1" if policy.host in ("0.0.0.0", "::") else policy.host
    host = f"[{host}]" if ":" in host else host
    query = "" if policy.token is None else f"?token={policy.token}"
    return f"http://{host}:{policy.port}/{query}"


def _listen(policy: Policy) -> socket.socket:
    """Bound before anything is read, so that a port in use is known at once."""
    family = socket.AF_INET6 if ":" in policy.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((policy.host, policy.port))
    except OSError as problem:
        listener.close()
        reason = f"{problem.strerror}; is another review open there? Choose another with --port"
        raise UserError(f"--host {policy.host} --port {policy.port}: {reason}") from problem
    return listener
