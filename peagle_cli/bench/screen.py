"""How quick the screen is: measured in processes of their own (`screen_probe.py`), on pseudo-terminals."""

import fcntl
import os
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path
from typing import TypeVar

import msgspec

from peagle_cli.bench.screen_figures import ChatFigures, ReplayFigures, ScreenFigures
from peagle_cli.engine.lanes import starting_lane
from peagle_cli.engine.protocol import Engine, EngineSpec, Message, Request
from peagle_cli.engine.recorded import header_of
from peagle_cli.errors import PeagleError
from peagle_cli.models.progress import OnProgress, Progress
from peagle_cli.recording.writer import Writer
from peagle_cli.trace.events import Sampling
from peagle_cli.tui.conversation import CANDIDATES_SHOWN

COLUMNS, LINES = 120, 36

_REPLY_TOKENS = 300
_PROMPT = "Write a Python function that merges two sorted lists, and explain how it works."
_LONGEST_S = 300.0
_SAID = 4000  # bytes that are kept of what a measuring process wrote, to tell why it failed

Figures = TypeVar("Figures", ReplayFigures, ChatFigures)


def measure_screen(engine: Engine, spec: EngineSpec, on_progress: OnProgress) -> ScreenFigures:
    """Measure the screen, which takes about two minutes, with replies of `engine`, and of another opened by `spec`.

    Needs pseudo-terminals, which Windows has not. Raises `PeagleError` when a measuring process fails.
    """
    with tempfile.TemporaryDirectory(prefix="peagle-bench-") as folder:
        recording = Path(folder) / "reply.peagle.jsonl"
        on_progress(Progress("Recording a reply"))
        _record(engine, recording)
        on_progress(Progress("Measuring a long replay on the screen"))
        replay = _probe("replay", os.fsencode(recording), ReplayFigures, Path(folder))
    on_progress(Progress("Measuring replies on the screen"))
    with tempfile.TemporaryDirectory(prefix="peagle-bench-") as folder:
        chat = _probe("chat", msgspec.json.encode(spec), ChatFigures, Path(folder))
    return ScreenFigures(COLUMNS, LINES, replay, chat)


def _record(engine: Engine, path: Path) -> None:
    """Record a reply, with all that is told of its steps on the screen."""
    lane = starting_lane(engine.info, None, None)
    request = Request((Message("user", _PROMPT),), (lane,), Sampling(), _REPLY_TOKENS, CANDIDATES_SHOWN)
    writer = Writer(path, header_of(engine.info))
    writer.ask(request.messages, [lane.name], request.candidates)
    for event in engine.run(request):
        writer.add(event)
    writer.end()
    writer.close()


def _probe(what: str, argument: bytes, kind: type[Figures], folder: Path) -> Figures:
    """Run the probe on a terminal, read what it writes there, and return what it found."""
    result = folder / "figures.json"
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "peagle_cli.bench.screen_probe", what, argument, result],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        env={**os.environ, "TERM": "xterm-256color", "PEAGLE_CONFIG_DIR": str(folder), "PEAGLE_DATA_DIR": str(folder)},
    )
    os.close(theirs)
    try:
        said = _drain(ours, time.monotonic() + _LONGEST_S)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    if not result.exists():
        last = said.decode(errors="replace").strip().splitlines()[-1:] or ["nothing"]
        raise PeagleError(f"The screen could not be measured; it said: {last[0]}", "Try it by hand: peagle chat.")
    return msgspec.json.decode(result.read_bytes(), type=kind)


def _drain(terminal: int, until: float) -> bytes:
    """Read all that is written to the terminal, as one that shows it would, until its program ends; return the end."""
    end = b""
    while time.monotonic() < until:
        if not select.select([terminal], [], [], 1.0)[0]:
            continue
        try:
            read = os.read(terminal, 1 << 16)
        except OSError:  # how Linux says that nobody has it open any more
            break
        if not read:
            break
        end = (end + read)[-_SAID:]
    return end
