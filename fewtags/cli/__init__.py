"""The command line: verb → function, nothing else. Heavy imports happen inside the verbs, so --help is instant."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from fewtags import __version__, interrupts
from fewtags.cli import comparing, datasets, holes, production, training
from fewtags.cli.cache import cache_app
from fewtags.cli.shared import errors
from fewtags.errors import BadImageError, UserError, printable
from fewtags.faults import explained, quiet_about_dropped

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="Train an image tagger when most of the tags are missing, and fill the missing ones in.",
    epilog="Exit codes: 0 done, 2 your input needs a change, 1 a fault of ours, 130 interrupted.",
)

COMMANDS = (
    training.train,
    training.evaluate,
    training.predict,
    holes.complete,
    holes.review,
    holes.simulate,
    datasets.inspect,
    datasets.new,
    datasets.convert,
    training.report,
    production.export,
    production.serve,
    comparing.methods,
    comparing.benchmark,
    training.reproduce,
    training.demo,
)
"""In the order of --help."""
for command in COMMANDS:
    app.command()(command)
app.add_typer(cache_app, name="cache")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fewtags {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None: ...


def main() -> None:
    """Run a command; a user's mistake is one message and exit code 2."""
    interrupts.listen()
    quiet_about_dropped()
    try:
        app()
    except UserError as mistake:
        errors.print(f"Error: {printable(str(mistake))}", markup=False, highlight=False, soft_wrap=True)
        if isinstance(mistake, BadImageError):
            hint = "train, predict, evaluate, complete and convert can leave such images out: --on-bad-image skip"
            errors.print(hint, highlight=False, soft_wrap=True)
        sys.exit(2)
    except (OSError, RuntimeError) as fault:  # of the machine, not ours: a full disk, a killed process
        told = explained(fault)
        if told is None:
            raise
        errors.print(f"Error: {printable(str(told))}", markup=False, highlight=False, soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
