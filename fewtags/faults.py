"""Faults of the machine, told to people: what happened, where, and what to do. Nothing here is a mistake of ours.

A full disk, a folder that cannot be written to, a process that loads images and was killed: libraries say these in
a dozen ways, and the command line says them in one.
"""

from __future__ import annotations

import errno
import os
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fewtags.errors import UserError

AGAIN = "What was finished is kept: run the same command again (a training run with --resume)"
FULL = f"make room there. {AGAIN}"
ELSEWHERE = "choose another place, or change its permissions"
WRITING = {
    errno.ENOSPC: ("the disk is full", FULL),
    errno.EDQUOT: ("your quota of the disk is used up", FULL),
    errno.EFBIG: ("the file would be larger than is allowed", FULL),
    errno.EROFS: ("the disk can only be read", ELSEWHERE),
}
"""These happen only to who writes."""
ACCESS = {
    errno.EACCES: ("you may not write there", ELSEWHERE),
    errno.EPERM: ("you may not write there", ELSEWHERE),
    errno.EIO: ("the disk reports an error", f"check it. {AGAIN}"),
    errno.ENOTDIR: ("a file is where a folder should be", "choose another place"),
    errno.EEXIST: ("a file is where a folder should be", "choose another place"),
    errno.EISDIR: ("a folder is where a file should be", "choose another place"),
}
ERROR_NUMBER = re.compile(r"\(os error (\d+)\)")
"""How libraries written in Rust (safetensors) say it."""
LOADER = re.compile(r"DataLoader worker \(pid(?:\(s\))? [\d, ]+\)")
HANDING_OVER = "multiprocessing.resource_sharer"
"""The module through which a process that loads images hands its memory to the one that trains."""


@contextmanager
def telling(written: str | Path) -> Iterator[None]:
    """Faults while this file or folder is written to become a `UserError`; anything else passes."""
    try:
        yield
    except Exception as problem:
        mistake = explained(problem, written)
        if mistake is None:
            raise
        raise mistake from problem


def explained(problem: BaseException, written: str | Path | None = None) -> UserError | None:
    """The error for people behind an exception that a fault of the machine has caused; None: it is another one.

    `written`: the file or folder that was being written to, if that is known.
    """
    if isinstance(problem, UserError):
        return None
    if _is_loaders_end(problem) or _is_cut_off_by_a_loader(problem):
        return UserError(
            "a process that loads images was ended from outside; was there enough memory? "
            f"With fewer of them (--set workers=1, or 0) less is needed. {AGAIN}"
        )
    number, named = error_number(problem), getattr(problem, "filename", None)
    about_written = written is not None and (named is None or _near(named, written))
    if number in WRITING or (number in ACCESS and about_written):
        what, advice = (WRITING | ACCESS)[number]
        return UserError(f"{written or named or 'a file'}: cannot be written, because {what}; {advice}")
    if number in ACCESS and named is not None:
        return UserError(f"{named}: {os.strerror(number)}; check the path and its permissions")
    return None


def error_number(problem: BaseException) -> int:
    """The operating system's number of the error; 0: it has none."""
    if isinstance(problem, OSError) and problem.errno is not None:
        return problem.errno
    found = ERROR_NUMBER.search(str(problem))
    return int(found[1]) if found else 0


def _is_loaders_end(problem: BaseException | None) -> bool:
    return isinstance(problem, RuntimeError) and LOADER.search(str(problem)) is not None


def _is_cut_off_by_a_loader(problem: BaseException) -> bool:
    """Whether it died while it handed a batch over, when torch still takes it for alive."""
    if not isinstance(problem, ConnectionError | EOFError | FileNotFoundError):
        return False
    frames = (frame for frame, _ in traceback.walk_tb(problem.__traceback__))
    return any(frame.f_globals.get("__name__") == HANDING_OVER for frame in frames)


def _near(named: str | bytes, written: str | Path) -> bool:
    """Whether a path is the one written to, inside it, or beside it or one of its folders: drafts, locks."""
    path, place = Path(os.path.abspath(os.fsdecode(named))), Path(os.path.abspath(written))
    return path == place or place in path.parents or path.parent in place.parents


def quiet_about_dropped() -> None:
    """For a command line: not every exception that Python drops (while an object is deleted, say) is printed.

    Signals raise theirs wherever the program happens to be. Ctrl-C is raised again before the next step of
    training, and a process that loads images is missed as soon as its next one is wanted; if none is, nothing is
    amiss.
    """
    print_it = sys.unraisablehook

    def told_later(dropped: Any) -> None:
        problem = dropped.exc_value
        if not (_is_loaders_end(problem) or isinstance(problem, KeyboardInterrupt)):
            print_it(dropped)

    sys.unraisablehook = told_later
