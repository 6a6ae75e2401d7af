"""Writes a recording while it happens: every record is in the operating system's hands before the next begins.

Killing the process loses at most the line being written. The file is its owner's alone.
"""

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from peagle_cli.recording.format import Asked, End, Happened, Header, Record, encode
from peagle_cli.trace.events import Event, Message, Started
from peagle_cli.trace.metrics import Metrics


class Writer:
    """One recording. Raises `OSError` where the file cannot be made or written.

    `now` is the wall clock in seconds, from any origin.
    """

    def __init__(self, path: Path, header: Header, now: Callable[[], float] = time.monotonic) -> None:
        self.path = path
        self._now = now
        self._lanes: dict[str, Metrics] = {}
        self._descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND, 0o600)
        self._begun = now()
        try:
            self._write(header)
        except OSError:
            self.close()
            path.unlink()  # what has no whole header is no recording
            raise

    def ask(self, messages: Sequence[Message], lanes: Sequence[str], candidates: int) -> None:
        """A request begins; the one before must have ended."""
        self._lanes = {}
        self._write(Asked(self._at_s(), tuple(messages), tuple(lanes), candidates))

    def add(self, event: Event) -> None:
        """One event of the request. A lane whose engine was gone before it started leaves nothing."""
        if isinstance(event, Started):
            self._lanes[event.lane] = Metrics()
        elif event.lane not in self._lanes:
            return
        self._lanes[event.lane].add(event)
        self._write(Happened(self._at_s(), event))

    def end(self) -> None:
        """The request is over, or its reader has gone."""
        figures = {lane: msgspec.to_builtins(metrics.summary()) for lane, metrics in self._lanes.items()}
        self._write(End(self._at_s(), figures))

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def _at_s(self) -> float:
        return round(self._now() - self._begun, 6)

    def _write(self, record: Record) -> None:
        line = encode(record)
        while line:
            line = line[os.write(self._descriptor, line) :]
