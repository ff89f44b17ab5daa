"""What is cached, and deleting it."""

from __future__ import annotations

from typing import Annotated

import typer

from fewtags.cli.shared import console
from fewtags.errors import UserError

cache_app = typer.Typer(help="What the cache holds, and deleting what is no longer used.")


@cache_app.callback(invoke_without_command=True)
def cache(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        cache_list()


@cache_app.command("list")
def cache_list() -> None:
    """Show cached features and indexes: size, and when they were last used. The same as `fewtags cache`."""
    from fewtags.images.cache import cache_folder
    from fewtags.images.cache_files import show_cache

    show_cache(cache_folder(), console)


@cache_app.command("clean")
def cache_clean(
    older_than: Annotated[
        str | None, typer.Option(help="What was not used for so long: 30d, 12h.", show_default=False)
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Everything.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Delete it; else only say what would be deleted.")] = False,
) -> None:
    """Delete cached features and indexes; they are computed again when needed."""
    from fewtags.durations import parse_duration
    from fewtags.images.cache import cache_folder
    from fewtags.images.cache_files import clean_cache

    if (older_than is None) == (not all_):
        raise UserError("say what to delete: --older-than 30d, or --all")
    age = 0.0 if older_than is None else parse_duration(older_than)
    clean_cache(cache_folder(), age, yes, console)
