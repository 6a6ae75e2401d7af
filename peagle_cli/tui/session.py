"""The bridge between a screen and an engine: blocking calls in threads, what they yield in a queue.

Knows the engine protocol, nothing of Textual. All methods are called from one thread, the screen's.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from queue import Empty, SimpleQueue
from threading import Thread

import msgspec

from peagle_cli.engine.open import start_engine
from peagle_cli.engine.protocol import Command, Engine, EngineInfo, EngineSpec, LaneSetting, Opening, Request, Stop
from peagle_cli.engine.recorded import RecordedEngine
from peagle_cli.errors import PeagleError
from peagle_cli.models.progress import Progress
from peagle_cli.trace.events import Event, Failed

_PATIENCE_S = 3.0  # for a reply to end when the session does


class Phase(Enum):
    """What the engine is doing: loading, waiting for a request, answering one, or gone."""

    LOADING = auto()
    READY = auto()
    REPLYING = auto()
    BROKEN = auto()


@dataclass(frozen=True)
class Opened:
    """The engine is ready."""

    engine: Engine

    @property
    def info(self) -> EngineInfo:
        """What was opened."""
        return self.engine.info


@dataclass(frozen=True)
class NotOpened:
    """The engine could not be opened."""

    error: PeagleError


@dataclass(frozen=True)
class Refused:
    """The request cannot be served; the engine waits for another."""

    error: PeagleError


@dataclass(frozen=True)
class Idle:
    """The reply has ended and the engine waits for the next request."""


@dataclass(frozen=True)
class Defect:
    """A mistake in the program, met in a thread; raised where the queue is read."""

    error: Exception


@dataclass(frozen=True)
class Trouble:
    """Something failed that replies do not depend on: in one sentence, what."""

    sentence: str


Update = Progress | Opened | NotOpened | Refused | Idle | Trouble | Event
_Queue = SimpleQueue[Update | Defect]


class Session:
    """One engine at a time, and what it reports.

    With `record` its replies are recorded; `continues` names the recording whose conversation they go on with.
    """

    def __init__(self, spec: EngineSpec, record: bool, continues: str | None = None) -> None:
        self.phase = Phase.LOADING
        self.engine: Engine | None = None
        self._spec = spec
        self._record = record
        self._continues = continues
        self._queue: _Queue = SimpleQueue()
        self._opening: Opening | None = None
        self._thread: Thread | None = None

    @property
    def busy(self) -> bool:
        """Whether updates are to be expected."""
        return self.phase in (Phase.LOADING, Phase.REPLYING)

    @property
    def recording(self) -> bool:
        """Whether replies are being recorded."""
        return isinstance(self.engine, RecordedEngine) and self.engine.recording

    def open(self, wanted: LaneSetting | None = None) -> None:
        """Begin to open an engine, after closing the one before. `wanted` is what the next request will ask for, where
        that is no longer what the first was to."""
        self.close()
        if wanted is not None:
            self._spec = msgspec.structs.replace(self._spec, method=wanted.method, depth=wanted.depth)
        self.phase = Phase.LOADING
        self._queue = SimpleQueue()  # what the old engine may still say is not heard
        self._opening = start_engine(self._spec)
        self._start(_open, self._opening, self._queue, self._recorded if self._record else _as_it_is)

    def run(self, request: Request, record: bool = True) -> None:
        """Begin to answer `request`, without a recording of it if so asked. The engine must be ready."""
        assert self.engine is not None and self.phase is Phase.READY
        self.phase = Phase.REPLYING
        engine = self.engine.engine if isinstance(self.engine, RecordedEngine) and not record else self.engine
        self._start(_reply, engine, request, self._queue)

    def control(self, command: Command) -> None:
        """Send a command to the reply that runs, if one does."""
        if self.engine is not None and self.phase is Phase.REPLYING:
            self.engine.control(command)

    def poll(self) -> list[Update]:
        """All that was reported since the last call, in order."""
        return self._reported(0.0)

    def wait(self, longest_s: float) -> list[Update]:
        """As `poll`, but waits so many seconds for something to be reported."""
        return self._reported(longest_s)

    def close(self) -> None:
        """End the reply, the loading and the engine."""
        self.control(Stop())
        if self._opening is not None:
            self._opening.cancel()
        if self._thread is not None:
            self._thread.join(_PATIENCE_S)
        if self.engine is not None:
            self.engine.close()
        self.engine = self._opening = self._thread = None
        self.phase = Phase.BROKEN

    def _reported(self, patience_s: float) -> list[Update]:
        updates: list[Update] = []
        while True:
            try:
                update = self._queue.get(timeout=0.0 if updates else patience_s)
            except Empty:
                return updates
            if isinstance(update, Defect):
                raise update.error
            self._follow(update)
            updates.append(update)

    def _follow(self, update: Update) -> None:
        match update:
            case Opened(engine=engine):
                self.engine, self._opening = engine, None
                self.phase = Phase.READY
            case NotOpened() | Failed():
                self.phase = Phase.BROKEN
            case Idle() if self.phase is Phase.REPLYING:
                self.phase = Phase.READY

    def _recorded(self, engine: Engine, queue: _Queue) -> Engine:
        return RecordedEngine(engine, lambda sentence: queue.put(Trouble(sentence)), self._continues)

    def _start(self, target: Callable[..., None], *args: object) -> None:
        self._thread = Thread(target=target, args=args, daemon=True)
        self._thread.start()


def _as_it_is(engine: Engine, queue: _Queue) -> Engine:
    return engine


def _open(opening: Opening, queue: _Queue, wrap: Callable[[Engine, _Queue], Engine]) -> None:
    try:
        queue.put(Opened(wrap(opening.wait(queue.put), queue)))
    except PeagleError as error:
        queue.put(NotOpened(error))
    except Exception as error:
        queue.put(Defect(error))


def _reply(engine: Engine, request: Request, queue: _Queue) -> None:
    try:
        for event in engine.run(request):
            queue.put(event)
    except PeagleError as error:
        queue.put(Refused(error))
    except Exception as error:
        queue.put(Defect(error))
    queue.put(Idle())
