"""Servers of our own under load: so many requests at once, for every method and depth.

One server runs at a time, started to draft at the depth that is measured, so that none pays for drafts that it throws
away. Requests are kept in flight all the time: as soon as one has its reply, the next is sent. What is measured is
what the server counts between two looks at its counters; the replies before the first look are the warm-up.
"""

import itertools
import platform
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from typing import Any
from uuid import uuid4

import peagle_cli
from peagle_cli.engine.protocol import EngineSpec
from peagle_cli.engine.vllm import preflight
from peagle_cli.engine.vllm.attempt import CHAT, sampling_like
from peagle_cli.engine.vllm.choice import Choice
from peagle_cli.engine.vllm.launch import CPU_BATCH, Launch, Plan
from peagle_cli.engine.vllm.link import TapLink
from peagle_cli.engine.vllm.own import ENGINE, machine_of
from peagle_cli.engine.vllm.server import Counters, Server, generated_tokens, parse_counters
from peagle_cli.engine.vllm.wire import Hello
from peagle_cli.errors import BadInputError, PeagleError
from peagle_cli.models.progress import OnProgress, Progress
from peagle_cli.trace.events import METHOD_NAMES, Sampling
from peagle_cli.trace.load import LoadReport, Window, best_ratios_of, points_of, ratios_of
from peagle_cli.trace.rounds import Setting, name_of


@dataclass(frozen=True)
class Load:
    """What to measure: every setting with every number of requests at once, `repeats` windows each.

    A window lasts until as many replies have come as there are prompts, and two for each request at once.
    """

    settings: tuple[Setting, ...]
    concurrency: tuple[int, ...]
    prompts: tuple[str, ...]
    repeats: int
    sampling: Sampling
    max_tokens: int

    def replies(self, concurrency: int) -> int:
        """Replies in a window."""
        return max(len(self.prompts), 2 * concurrency)


def measure(choice: Choice, spec: EngineSpec, load: Load, on_progress: OnProgress) -> LoadReport:
    """Start a server for each setting, one after the other, and measure it under every load.

    Raises `BadInputError` where there is no setting, or no drafter for one; `PeagleError` when a server does not start,
    or breaks off.
    """
    if not load.settings:
        raise BadInputError(f"No drafter is known for {choice.title}.", "Name one with --drafter.")
    for method, _ in load.settings:
        if method != "none" and method not in choice.drafters:
            raise BadInputError(f"There is no {METHOD_NAMES[method]} drafter.", "Name one with --drafter.")
    measured: dict[tuple[Setting, int], list[Window]] = {}
    hello: Hello | None = None
    for setting in load.settings:
        launch = Launch(_plan(choice, spec, load, setting), choice.installation)
        try:
            launch.wait(on_progress)
            hello = hello or _greet(launch)
            for concurrency in load.concurrency:
                told = f"{name_of(setting)}, {concurrency} at once"
                measured[setting, concurrency] = _measure(launch, choice.title, load, concurrency, told, on_progress)
        finally:
            launch.close()
    assert hello is not None, "there are settings"
    return LoadReport(
        engine=ENGINE,
        model=choice.title,
        drafters={method: drafter.folder.name for method, drafter in choice.drafters.items()},
        machine=machine_of(hello),
        versions={"peagle": peagle_cli.__version__, "vllm": hello.vllm, "python": platform.python_version()},
        sampling=load.sampling,
        max_tokens=load.max_tokens,
        prompts=len(load.prompts),
        repeats=load.repeats,
        points=points_of(measured),
        ratios=ratios_of(measured),
        best_ratios=best_ratios_of(measured),
    )


def _plan(choice: Choice, spec: EngineSpec, load: Load, setting: Setting) -> Plan:
    method, depth = setting
    flags = choice.flags
    most = max(load.concurrency)
    if most > CPU_BATCH and choice.installation.cpu and preflight.value_of(flags, "--max-num-seqs") is None:
        flags = ("--max-num-seqs", str(most), *flags)
    return Plan(
        name=choice.title,
        method=METHOD_NAMES[method],
        target=choice.target,
        drafter=choice.drafters.get(method),
        depth=depth,
        dtype=spec.dtype,
        flags=flags,
    )


def _greet(launch: Launch) -> Hello:
    link = TapLink.connect(launch.tap)
    if link is None:
        raise PeagleError("The server answers, and its tap does not.", f"Its log is {launch.log}")
    link.close()
    return link.hello


def _measure(
    launch: Launch, model: str, load: Load, concurrency: int, told: str, on_progress: OnProgress
) -> list[Window]:
    """The windows of one server under one load."""
    crowd = Crowd(launch.server, (_body(model, load, prompt) for prompt in itertools.cycle(load.prompts)), concurrency)
    windows: list[Window] = []
    replies = load.replies(concurrency)
    try:
        on_progress(Progress(f"{told}: warming up"))
        crowd.wait_for(concurrency, lambda _: None)
        began, before = time.monotonic(), _counters(launch.server)
        for number in range(load.repeats):
            stage = f"{told}: window {number + 1} of {load.repeats}"
            crowd.wait_for(replies, partial(_tell, on_progress, stage, replies))
            now, counted = time.monotonic(), _counters(launch.server)
            windows.append(_window(now - began, replies, counted.since(before)))
            began, before = now, counted
    except PeagleError as error:
        if isinstance(error, BadInputError) or launch.running:
            raise
        raise launch.failure() from error
    finally:
        crowd.stop()
    return windows


def _tell(on_progress: OnProgress, stage: str, replies: int, done: int) -> None:
    on_progress(Progress(stage, done, replies))


def _window(seconds: float, replies: int, counted: Counters) -> Window:
    return Window(
        seconds=seconds,
        replies=replies,
        tokens=counted.tokens,
        drafts=counted.drafts,
        draft_tokens=counted.draft_tokens,
        accepted_tokens=counted.accepted_tokens,
        accepted_at=counted.accepted_at,
    )


def _counters(server: Server) -> Counters:
    told = server.metrics()
    return parse_counters(told) or Counters(0, 0, 0, (), generated_tokens(told))


def _body(model: str, load: Load, prompt: str) -> dict[str, Any]:
    """A request that no other shares a cached prefix with."""
    return {
        "model": model,
        "messages": [{"role": "user", "content": prompt}],
        "max_tokens": load.max_tokens,
        "cache_salt": uuid4().hex,
        **sampling_like(load.sampling),
    }


class Crowd:
    """Keeps `size` requests in flight, each sent when the one before it has its reply, until it is told to stop."""

    def __init__(self, server: Server, bodies: Iterator[dict[str, Any]], size: int) -> None:
        self._server = server
        self._bodies = bodies
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._news: SimpleQueue[PeagleError | None] = SimpleQueue()
        self._threads = [threading.Thread(target=self._ask, name="a request", daemon=True) for _ in range(size)]
        for thread in self._threads:
            thread.start()

    def wait_for(self, replies: int, on_reply: Callable[[int], None]) -> None:
        """Wait until so many replies more have come; raises the `PeagleError` of the first that does not."""
        for done in range(1, replies + 1):
            error = self._news.get()
            if error is not None:
                raise error
            on_reply(done)

    def stop(self) -> None:
        """Send no more, and wait for the replies that are under way."""
        self._stopped.set()
        for thread in self._threads:
            thread.join()

    def _ask(self) -> None:
        while not self._stopped.is_set():
            with self._lock:
                body = next(self._bodies)
            try:
                self._server.reply(CHAT, body)
                self._news.put(None)
            except PeagleError as error:
                self._news.put(error)
                return
