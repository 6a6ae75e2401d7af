"""A lane on servers that come and go: here, such as answer at once or are never there."""

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import msgspec

from peagle_cli.engine.protocol import EngineInfo, LaneSetting, Message, Request, SetMethod, Stop
from peagle_cli.engine.vllm.attempt import Backend
from peagle_cli.engine.vllm.client import VllmEngine
from peagle_cli.engine.vllm.launch import UnwantedError
from peagle_cli.engine.vllm.server import Server
from peagle_cli.errors import PeagleError
from peagle_cli.trace.events import Changed, DraftBatch, Event, Failed, Finished, Method, Sampling, Started
from tests.engine.vllm.servers import serving
from tests.tui.batches import INFO

DEPTH = 3


class Servers:
    """P-EAGLE's is there; EAGLE-3's starts, and starts; plain decoding's does not come up."""

    def __init__(self, url: str) -> None:
        self.info: EngineInfo = msgspec.structs.replace(INFO, takes_turns=False)
        self.starting = threading.Event()
        self._here = Backend(Server(url), "small", None, DEPTH, False, None)

    def check(self, request: Request) -> None:
        """All is well."""

    def backend(self, method: Method, wanted: Callable[[], bool]) -> Backend:
        if method == "none":
            raise PeagleError("The GPU has too little memory for this model.", "Its log is elsewhere.")
        if method == "eagle3":
            self.starting.set()
            while wanted():
                self.starting.wait(0.01)
            raise UnwantedError("It was not waited for.")
        return self._here

    def remark(self, backend: Backend) -> str:
        return ""

    def why_gone(self, backend: Backend, error: PeagleError) -> PeagleError:
        return error

    def close(self) -> None:
        """There is nothing."""


@contextmanager
def engine(**settings: Any) -> Generator[tuple[VllmEngine, Servers]]:
    with serving(**settings) as (url, _):
        servers = Servers(url)
        yield VllmEngine(servers), servers


def reply(engine: VllmEngine, method: Method) -> Generator[Event]:
    lane = LaneSetting("chat", method, 0 if method == "none" else DEPTH)
    return engine.run(Request((Message("user", "Count."),), (lane,), Sampling(), 20))


def in_background(events: Generator[Event]) -> tuple[list[Event], threading.Thread]:
    heard: list[Event] = []
    thread = threading.Thread(target=lambda: heard.extend(events))
    thread.start()
    return heard, thread


def kinds(events: list[Event]) -> list[type[Any]]:
    return [type(event) for event in events]


def test_a_server_that_starts_is_not_waited_for_once_the_reply_is_stopped() -> None:
    with engine() as (vllm, servers):
        heard, thread = in_background(reply(vllm, "eagle3"))
        assert servers.starting.wait(10)
        vllm.control(Stop())
        thread.join(10)
    assert kinds(heard) == [Started, Finished]
    assert heard[-1] == Finished("chat", "cancelled")


def test_a_server_that_starts_is_not_waited_for_once_another_method_is_chosen() -> None:
    with engine() as (vllm, servers):
        heard, thread = in_background(reply(vllm, "eagle3"))
        assert servers.starting.wait(10)
        vllm.control(SetMethod("chat", "peagle"))
        thread.join(10)
    assert kinds(heard) == [Started, DraftBatch, DraftBatch, DraftBatch, Finished]
    assert isinstance(heard[0], Started)
    assert heard[0].method == "peagle"


def test_a_server_that_does_not_come_up_in_the_midst_of_a_reply_is_a_failure_behind_what_was_said() -> None:
    goes_on = threading.Event()
    with engine(goes_on=goes_on) as (vllm, _):
        events = reply(vllm, "peagle")
        heard = [next(events), next(events)]
        vllm.control(SetMethod("chat", "none"))
        heard += events
        goes_on.set()
    assert isinstance(heard[0], Started)
    assert isinstance(heard[1], DraftBatch)
    assert Changed("chat", "method", "peagle", "none") in heard
    assert heard[-1] == Failed("chat", "The GPU has too little memory for this model.", "Its log is elsewhere.")
