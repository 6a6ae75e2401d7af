"""The standard streams, made fit for whatever is written to them."""

import io
import os
import sys


def prepare() -> None:
    """Open those that were closed before the start on nothing, and let standard output refuse no character.

    A closed one would otherwise be None, and its descriptor would go to the next file that is opened.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a "?" where the locale's encoding has no such character
