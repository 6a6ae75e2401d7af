"""vLLM behind the `Engine` protocol: servers of our own, or one that runs already."""

import contextlib
import threading
from collections.abc import Generator
from functools import partial
from typing import Protocol
from uuid import uuid4

from peagle_cli.engine.protocol import (
    Command,
    EngineInfo,
    Pause,
    Request,
    Resume,
    SetDepth,
    SetMethod,
    Step,
    Stop,
)
from peagle_cli.engine.validate import check_command, check_request, check_steerable
from peagle_cli.engine.vllm.lane import Backends, LaneRun
from peagle_cli.errors import PeagleError
from peagle_cli.trace.events import Event, Failed, Started


class Servers(Backends, Protocol):
    """Where an engine gets its servers, and what it says of itself."""

    @property
    def info(self) -> EngineInfo:
        """What was opened."""
        ...

    def check(self, request: Request) -> None:
        """Raise `BadInputError` for a request that these servers would get wrong."""
        ...

    def close(self) -> None:
        """Give everything back."""
        ...


class VllmEngine:
    """Lanes on vLLM servers. The lanes of a request run one after the other, each alone: two servers that share a
    machine would spoil each other's times."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self._salt = uuid4().hex
        self._lock = threading.Lock()
        self._lanes: dict[str, LaneRun] = {}
        self._running: LaneRun | None = None

    @property
    def info(self) -> EngineInfo:
        """What was opened."""
        return self._servers.info

    def run(self, request: Request) -> Generator[Event]:
        """Answer `request`, as `Engine.run` says."""
        info = self.info
        check_request(request, info)
        self._servers.check(request)
        lanes = [
            LaneRun(lane, request, self._servers, info.context, f"{self._salt} {lane.name}") for lane in request.lanes
        ]
        with self._lock:
            self._lanes = {lane.name: lane for lane in lanes}
        return self._answer(lanes, request)

    def control(self, command: Command) -> None:
        """Obey `command` as far as the server can; raises `BadInputError` where it cannot."""
        check_command(command, self.info)
        if not isinstance(command, Stop):
            check_steerable(self.info)
        with self._lock:
            lanes, running = dict(self._lanes), self._running
        match command:
            case SetDepth(lane=name, depth=depth) if name in lanes:
                lanes[name].set_depth(depth)
            case SetMethod(lane=name, method=method) if name in lanes:
                lanes[name].set_method(method)
            case Pause() | Resume():
                for lane in lanes.values():
                    lane.hold(isinstance(command, Pause))
            case Step() if running:
                running.step()
            case Stop():
                for lane in lanes.values():
                    lane.stop()

    def close(self) -> None:
        """End the servers that were started, and hang up on others."""
        self.control(Stop())
        self._servers.close()

    def _answer(self, lanes: list[LaneRun], request: Request) -> Generator[Event]:
        try:
            for i, lane in enumerate(lanes):
                with self._lock:
                    self._running = lane
                events = lane.events(partial(self._started, request))
                with contextlib.closing(events):
                    yield from events if i == 0 else self._with_refusal(events, lane)
        finally:
            with self._lock:
                self._lanes, self._running = {}, None

    def _with_refusal(self, events: Generator[Event], lane: LaneRun) -> Generator[Event]:
        """A later lane's refusal can only be an event: others have begun."""
        try:
            yield from events
        except PeagleError as error:
            yield Failed(lane.name, error.message, error.hint)

    def _started(self, request: Request, lane: LaneRun) -> Started:
        return self.info.started(
            request, lane.name, method=lane.method, depth=lane.depth, prompt_ids=lane.prompt_ids, reused=lane.reused
        )
