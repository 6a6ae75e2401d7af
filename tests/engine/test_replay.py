"""A replay gives what was recorded, when it was, and obeys."""

import math
from collections.abc import Iterable, Iterator
from itertools import pairwise
from queue import SimpleQueue

import pytest

from peagle_cli.engine.protocol import Command, Pause, Resume, SetDepth, Step, Stop
from peagle_cli.engine.replay import ReplayEngine, WallClock
from peagle_cli.errors import BadInputError
from peagle_cli.trace.events import DraftBatch, Event, Finished, Started
from tests.recordings import CHAT, RACE, Recorded


class Script(WallClock):
    """A clock that jumps to where it is waited for, and the commands that come at given times."""

    def __init__(self, commands: Iterable[tuple[float, Command]] = ()) -> None:
        self.time = 100.0
        self.commands = [(100.0 + at, command) for at, command in commands]

    def now(self) -> float:
        return self.time

    def wait(self, commands: "SimpleQueue[Command]", until: float) -> Command | None:
        if self.commands and self.commands[0][0] <= until:
            at, command = self.commands.pop(0)
            self.time = max(self.time, at)
            return command
        assert until < math.inf, "waits forever"
        self.time = max(self.time, until)
        return None


def timed(engine: ReplayEngine, clock: Script) -> Iterator[tuple[float, Event]]:
    for event in engine.run(CHAT):
        yield clock.time - 100.0, event


def test_replays_the_very_events(recorded: Recorded) -> None:
    engine = ReplayEngine(recorded.load(), clock=Script())
    assert engine.requests == [CHAT, RACE]
    assert [list(engine.run(request)) for request in engine.requests] == recorded.told
    assert engine.info.engine == "replay"
    assert engine.info.machine == recorded.load().header.machine


def test_keeps_the_pace(recorded: Recorded) -> None:
    times = recorded.load().runs[0].times
    clock = Script()
    replayed = [at for at, _ in timed(ReplayEngine(recorded.load(), clock=clock), clock)]
    assert replayed == pytest.approx([at - times[0] for at in times])
    clock = Script()
    slow = [at for at, _ in timed(ReplayEngine(recorded.load(), speed=0.25, clock=clock), clock)]
    assert slow == pytest.approx([4 * at for at in replayed])
    clock = Script()
    brisk = [at for at, _ in timed(ReplayEngine(recorded.load(), max_idle=1e-4, clock=clock), clock)]
    assert max(b - a for a, b in pairwise(brisk)) == pytest.approx(1e-4)


def test_pauses_do_not_count(recorded: Recorded) -> None:
    times = recorded.load().runs[0].times
    middle = (times[4] + times[5]) / 2 - times[0]
    clock = Script([(middle, Pause()), (middle + 60, Resume())])
    replayed = [at for at, _ in timed(ReplayEngine(recorded.load(), clock=clock), clock)]
    assert replayed == pytest.approx([at - times[0] + (60 if at > times[4] else 0) for at in times])


def test_steps_one_batch_at_a_time(recorded: Recorded) -> None:
    clock = Script([(0, Pause()), *((10.0 * step, Step()) for step in range(1, 100))])
    for at, event in timed(ReplayEngine(recorded.load(), clock=clock), clock):
        if isinstance(event, DraftBatch):
            last = 10.0 * (event.step + 1)
            assert at == pytest.approx(last)
        elif isinstance(event, Finished):
            assert at == pytest.approx(last)


def test_stops(recorded: Recorded) -> None:
    clock = Script([(0, Pause()), (1, Step()), (2, Stop())])
    events = [event for _, event in timed(ReplayEngine(recorded.load(), clock=clock), clock)]
    assert [type(event) for event in events] == [Started, DraftBatch, Finished]
    assert events[-1] == Finished("main", "cancelled")


def test_refuses_what_it_has_no_answer_to(recorded: Recorded) -> None:
    engine = ReplayEngine(recorded.load())
    with pytest.raises(BadInputError, match="no answer"):
        engine.run(RACE.__class__(CHAT.messages, RACE.lanes, CHAT.sampling, 1))
    with pytest.raises(BadInputError, match="otherwise"):
        engine.control(SetDepth("main", 1))
    for speed in (0, -1, math.nan, math.inf):
        with pytest.raises(BadInputError):
            ReplayEngine(recorded.load(), speed=speed)
