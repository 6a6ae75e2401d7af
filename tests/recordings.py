"""A real recording to test with: two requests to the tiny model, whose words are noise; the second is a race."""

from pathlib import Path

import pytest

from peagle_cli.engine.protocol import LaneSetting, Message, Request, SetDepth, SetMethod
from peagle_cli.engine.recorded import RecordedEngine
from peagle_cli.engine.torch.engine import TorchEngine
from peagle_cli.recording import sessions
from peagle_cli.recording.recording import Recording
from peagle_cli.trace.events import DraftBatch, Event, Sampling

PROMPT = Message("user", "Name three rivers.")
CHAT = Request((PROMPT,), (LaneSetting("main", "peagle", 5),), Sampling(), max_tokens=30, candidates=2)
RACE = Request(
    (PROMPT, Message("assistant", "Danube, Rhine, Elbe."), Message("user", "And three <b>more</b>.")),
    (LaneSetting("P-EAGLE", "peagle", 4), LaneSetting("plain", "none", 0)),
    Sampling(temperature=0.7, top_p=0.9, seed=3),
    max_tokens=12,
)


class Recorded:
    """A recording, and the events that its engine gave out while it was made, by request."""

    def __init__(self, path: Path, told: list[list[Event]]) -> None:
        self.path = path
        self.told = told

    def load(self) -> Recording:
        return Recording.load(self.path)

    def lines(self) -> list[bytes]:
        return self.path.read_bytes().splitlines(keepends=True)


def record(engine: TorchEngine, data: Path) -> Recorded:
    """Record the chat, in which depth and method change, and the race; `data` is where peagle keeps its data."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PEAGLE_DATA_DIR", str(data))
        recording = RecordedEngine(engine, pytest.fail)
        told: list[list[Event]] = [[], []]
        for event in recording.run(CHAT):
            told[0].append(event)
            if isinstance(event, DraftBatch) and event.step == 3:
                recording.control(SetDepth("main", 2))
                recording.control(SetMethod("main", "eagle3"))
        told[1] += recording.run(RACE)
        return Recorded(sessions.find("last"), told)
