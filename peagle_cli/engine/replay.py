"""A recording as an engine: the recorded events, at the recorded pace or another, under the same commands.

A recording answers only the requests it holds, and cannot draft otherwise than it did.
"""

import math
import time
from collections.abc import Generator
from queue import Empty, SimpleQueue

from peagle_cli.engine.protocol import (
    Command,
    EngineInfo,
    LaneSetting,
    Pause,
    Request,
    Resume,
    SetDepth,
    SetMethod,
    Step,
    Stop,
)
from peagle_cli.errors import BadInputError
from peagle_cli.recording.recording import Recording, Run
from peagle_cli.trace.events import DraftBatch, Event, Failed, Finished, Started

ENGINE = "replay"
_Commands = SimpleQueue[Command]


class WallClock:
    """The time in seconds, and waiting for a command until some time."""

    def now(self) -> float:
        """Seconds since some origin."""
        return time.monotonic()

    def wait(self, commands: _Commands, until: float) -> Command | None:
        """The next command, or None when none came until then; `math.inf` waits forever."""
        try:
            return commands.get(timeout=None if until == math.inf else max(0.0, until - self.now()))
        except Empty:
            return None


class ReplayEngine:
    """The recording's requests, replayed `speed` times as fast, with no wait longer than `max_idle` recorded seconds.

    Both may be set at any time and count from the next event on. Raises `BadInputError` when they make no sense.
    """

    def __init__(
        self, recording: Recording, speed: float = 1.0, max_idle: float = math.inf, clock: WallClock | None = None
    ) -> None:
        check_pace(speed, max_idle)
        self.recording = recording
        self.speed = speed
        self.max_idle = max_idle
        self._clock = clock or WallClock()
        self._commands: _Commands = SimpleQueue()
        self._next = 0

    @property
    def info(self) -> EngineInfo:
        """What was recorded, as a replay."""
        header = self.recording.header
        return EngineInfo(
            engine=ENGINE,
            model=header.model,
            drafters=header.drafters,
            max_depths=header.max_depths,
            context=header.context,
            machine=header.machine,
            versions=header.versions,
        )

    @property
    def requests(self) -> list[Request]:
        """The requests that can be asked, in recorded order."""
        return [request_of(run) for run in self.recording.runs if run.started]

    def run(self, request: Request) -> Generator[Event]:
        """Replay the answer to `request`; asked again, the next answer to it where there are several.

        Raises `BadInputError` for a request that was not recorded.
        """
        runs = [run for run in self.recording.runs if run.started]
        for index in (*range(self._next, len(runs)), *range(min(self._next, len(runs)))):
            if request_of(runs[index]) == request:
                self._next = index + 1
                self._commands = SimpleQueue()
                return self._replay(runs[index], _Pace(self._clock, self._commands))
        raise BadInputError("The recording has no answer to this.", "A replay answers what was asked when recorded.")

    def control(self, command: Command) -> None:
        """Obey `command`; raises `BadInputError` for a change of what was recorded."""
        if isinstance(command, SetDepth | SetMethod):
            raise BadInputError("A recording cannot be drafted otherwise.", "Ask the model itself: peagle chat.")
        self._commands.put(command)

    def close(self) -> None:
        """Nothing is held."""

    def _replay(self, run: Run, pace: "_Pace") -> Generator[Event]:
        unfinished: dict[str, None] = {}
        before = run.times[0]
        for at_s, event in zip(run.times, run, strict=True):
            pace.wait(min(at_s - before, self.max_idle) / self.speed, event)
            before = at_s
            if pace.stopped:
                yield from (Finished(lane, "cancelled") for lane in unfinished)
                return
            if isinstance(event, Started):
                unfinished[event.lane] = None
            elif isinstance(event, Finished | Failed):
                unfinished.pop(event.lane)
            yield event
        yield from (Failed(lane, "The recording ends here, within the reply.") for lane in unfinished)


class _Pace:
    """When the next event is due, under the commands that come meanwhile."""

    def __init__(self, clock: WallClock, commands: _Commands) -> None:
        self.stopped = False
        self._clock = clock
        self._commands = commands
        self._paused = False
        self._steps = 0  # asked for while paused and not yet taken
        self._due = clock.now()

    def wait(self, seconds: float, event: Event) -> None:
        """Wait until `event` is due, so long after the one before; pauses do not count. Ends early when `stopped`."""
        left = seconds  # of the wait, while paused
        self._due += seconds
        while not self.stopped and not (self._paused and (self._steps or _ends(event))):
            match self._clock.wait(self._commands, math.inf if self._paused else self._due):
                case None:
                    return
                case Pause() if not self._paused:
                    self._paused, left = True, self._due - self._clock.now()
                case Resume() if self._paused:
                    self._paused, self._due = False, self._clock.now() + left
                case Step() if self._paused:
                    self._steps += 1
                case Stop():
                    self.stopped = True
        self._due = self._clock.now()
        if self._steps and isinstance(event, DraftBatch):
            self._steps -= 1


def check_pace(speed: float, max_idle: float) -> None:
    """Raise `BadInputError` for numbers that make no pace."""
    if not 0 < speed < math.inf:
        raise BadInputError(f"Nothing can be replayed at {speed} times its speed.", "Use a number above 0.")
    if not max_idle >= 0:
        raise BadInputError(f"A longest wait of {max_idle} s cannot be.", "Use 0 s or more.")


def request_of(run: Run) -> Request:
    """What was asked, of the lanes that started; the run must have one."""
    starts = list(run.started.values())
    return Request(
        messages=run.asked.messages,
        lanes=tuple(LaneSetting(start.lane, start.method, start.depth) for start in starts),
        sampling=starts[0].sampling,
        max_tokens=starts[0].max_tokens,
        candidates=run.asked.candidates,
    )


def _ends(event: Event) -> bool:
    """Whether the event belongs to the step before it, and so follows that even in a pause."""
    return isinstance(event, Finished | Failed)
