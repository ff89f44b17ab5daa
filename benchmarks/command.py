"""How the scripts of this folder end when they are run as commands."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NoReturn

from fewtags.errors import UserError


def run(main: Callable[[], int]) -> NoReturn:
    """With its exit code; what a user did wrong is one line, not a traceback."""
    try:
        sys.exit(main())
    except UserError as error:
        sys.exit(str(error))
