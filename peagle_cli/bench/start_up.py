"""How long peagle takes to start: its help, the first paint of its screen, and a first token."""

import contextlib
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

from peagle_cli.bench.report import Spread, StartUp
from peagle_cli.errors import PeagleError
from peagle_cli.models.progress import OnProgress, Progress

REPEATS = 5

_PEAGLE = (sys.executable, "-P", "-m", "peagle_cli")
_PAINTED = 2000
"""Bytes that a terminal is sent before a screen can be called painted: setting it up takes less."""

_LONGEST_S = 60.0


def measure(opening: Sequence[str], on_progress: OnProgress) -> StartUp:
    """Start peagle again and again; `opening` are the options that say which engine to open."""
    on_progress(Progress("Measuring start-up"))
    chat = ("chat", "--no-record", *opening)
    return StartUp(
        help_s=_repeated(lambda: _finished(["--help"])),
        first_paint_s=_repeated(lambda: _painted(chat)) if sys.platform != "win32" else None,
        first_token_s=_repeated(lambda: _finished([*chat, "--plain", "--max-tokens", "1", "Hello"])),
    )


def _repeated(once: Callable[[], float]) -> Spread:
    once()  # reads the files into memory
    return Spread.of([once() for _ in range(REPEATS)])


def _finished(arguments: Sequence[str]) -> float:
    began = time.perf_counter()
    ended = subprocess.run([*_PEAGLE, *arguments], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if ended.returncode:
        said = ended.stderr.decode(errors="replace").strip().splitlines()
        raise PeagleError(f"peagle {arguments[0]} failed: {said[0] if said else 'it said nothing'}", "Try it by hand.")
    return time.perf_counter() - began


def _painted(arguments: Sequence[str]) -> float:
    """Seconds until the screen of `peagle chat` stands on a terminal of its own."""
    ours, theirs = os.openpty()
    began = time.perf_counter()
    process = subprocess.Popen(
        [*_PEAGLE, *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "120", "LINES": "36"},
    )
    os.close(theirs)
    try:
        received = 0
        while received < _PAINTED:
            if not select.select([ours], [], [], _LONGEST_S)[0]:
                raise PeagleError("The screen was not painted within a minute.", "Try `peagle chat` by hand.")
            received += len(os.read(ours, 65536))
        return time.perf_counter() - began
    finally:
        process.terminate()
        with contextlib.suppress(OSError):  # the terminal is gone
            while os.read(ours, 65536):
                pass
        process.wait()
        os.close(ours)
