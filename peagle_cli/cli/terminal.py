"""Whether there is a terminal that a screen can be drawn on."""

import os
import sys

from peagle_cli.errors import BadInputError

_NO_CURSOR = ("dumb", "unknown")  # what such terminals call themselves in TERM


def is_there() -> bool:
    """Whether the user writes and reads on one."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def check(instead: str) -> None:
    """Raise `BadInputError` for a terminal that cannot move its cursor; `instead` is the option that does without."""
    if (term := os.environ.get("TERM", "")) in _NO_CURSOR:
        raise BadInputError(
            f"The screen needs a terminal that can move its cursor, and TERM says {term}.",
            f"Add {instead}, or set TERM to what it is, as xterm-256color.",
        )
