"""The standard streams, made fit for whatever is written to them, and writing to them."""

import io
import os
import sys

from peagle_cli.text import printable_json
from peagle_cli.trace.events import Event, encode


def prepare() -> None:
    """Open those that were closed before the start on nothing, and let standard output refuse no character.

    A closed one would otherwise be None, and its descriptor would go to the next file that is opened.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a "?" where the locale's encoding has no such character


def write(text: str) -> None:
    """Write to standard output, at once."""
    sys.stdout.write(text)
    sys.stdout.flush()


def write_event(event: Event) -> None:
    """Write a line of `--output jsonl`."""
    write(printable_json(encode(event)).decode() + "\n")
