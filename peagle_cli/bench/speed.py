"""Tokens per second of the engine, plain and with every drafter, and of other programs, on the same prompts.

Prompt by prompt every lane answers once, another beginning each time, so that what disturbs the machine for a while
disturbs all alike. No two run at once. Before the first prompt each lane answers it shortly, which is in no figure.
"""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median

from peagle_cli.bench.peers import Lane, Peer, Reply, start
from peagle_cli.bench.report import Speed, Spread, Step
from peagle_cli.engine.protocol import Engine, LaneSetting, Request
from peagle_cli.errors import PeagleError
from peagle_cli.models.progress import OnProgress, Progress
from peagle_cli.trace.events import DraftBatch, Failed, Message, Sampling, Started
from peagle_cli.trace.rounds import Setting

WARM_UP_TOKENS = 24


def ask(
    engine: Engine, messages: Sequence[Message], setting: LaneSetting, tokens: int, candidates: int = 0
) -> tuple[Started, list[DraftBatch], float]:
    """One greedy reply: how it started, its batches, and its seconds from the request on. Raises `PeagleError` when it
    fails."""
    batches: list[DraftBatch] = []
    started: Started | None = None
    began = time.perf_counter()
    for event in engine.run(Request(tuple(messages), (setting,), Sampling(), tokens, candidates)):
        match event:
            case Failed():
                raise event.error
            case Started():
                started = event
            case DraftBatch():
                batches.append(event)
    if started is None:
        raise PeagleError("The engine answered nothing.", "Try again.")
    return started, batches, time.perf_counter() - began


class Ours:
    """The engine with one setting."""

    def __init__(self, engine: Engine, setting: Setting) -> None:
        self.setting = setting
        self._engine = engine
        self._steps: list[Step] = []
        self._replies = 0

    def reply(self, prompt: str, tokens: int) -> Reply:
        """Answer, with no cache of an earlier reply."""
        self._replies += 1
        lane = LaneSetting(f"bench {self._replies}", *self.setting)
        _, batches, seconds = ask(self._engine, (Message("user", prompt),), lane, tokens)
        steps = batches[1:]
        if steps and tokens > WARM_UP_TOKENS:
            draft, verify = (sum(getattr(batch, part) for batch in steps) for part in ("draft_s", "verify_s"))
            rest = seconds - sum(batch.draft_s + batch.verify_s for batch in batches)
            emitted = sum(batch.emitted for batch in steps)
            self._steps.append(Step(emitted / len(steps), draft / len(steps), verify / len(steps), rest / len(batches)))
        return Reply(sum(batch.emitted for batch in batches), seconds)

    @property
    def step(self) -> Step | None:
        """Where its steps' time went."""
        names = Step.__struct_fields__
        return Step(*(median(getattr(step, name) for step in self._steps) for name in names)) if self._steps else None


class SpeedTest:
    """Our settings, plain decoding first, and the peers, on prompts of one turn."""

    def __init__(
        self,
        engine: Engine,
        settings: Sequence[Setting],
        peers: Sequence[Peer],
        prompts: Sequence[str],
        tokens: int,
        on_progress: OnProgress,
    ) -> None:
        self._engine = engine
        self._ours = [Ours(engine, setting) for setting in settings]
        self._peers = peers
        self._prompts = prompts
        self._tokens = tokens
        self._on_progress = on_progress

    def measure(self) -> tuple[Speed, ...]:
        """Run all of it; raises `PeagleError` when an engine or a peer fails."""
        ids = [self._ids(prompt) for prompt in self._prompts]
        lanes: list[Callable[[int, int], Reply]] = [
            *((lambda i, n, ours=ours: ours.reply(self._prompts[i], n)) for ours in self._ours),
            *((lambda i, n, peer=peer: peer.reply(ids[i], n)) for peer in self._peers),
        ]
        for lane in lanes:
            lane(0, WARM_UP_TOKENS)
        rates: list[list[float]] = [[] for _ in lanes]
        for i in range(len(self._prompts)):
            self._on_progress(Progress("Measuring speeds", i, len(self._prompts)))
            for j in range(len(lanes)):
                k = (i + j) % len(lanes)
                reply = lanes[k](i, self._tokens)
                rates[k].append(reply.tokens / reply.seconds)
        return tuple(self._speeds(rates))

    def _ids(self, prompt: str) -> list[int]:
        started, _, _ = ask(self._engine, (Message("user", prompt),), LaneSetting("bench", "none", 0), 1)
        return list(started.prompt_ids)

    def _speeds(self, rates: Sequence[Sequence[float]]) -> Iterator[Speed]:
        info = self._engine.info
        for ours, own in zip(self._ours, rates, strict=False):
            name, version = "peagle", info.versions.get("peagle", "")
            yield Speed(name, version, info.machine.precision, *ours.setting, *_spreads(own, rates[0]), ours.step)
        for peer, own in zip(self._peers, rates[len(self._ours) :], strict=True):
            lane = peer.lane
            spreads = _spreads(own, rates[0])
            yield Speed(lane.order.peer, peer.version, peer.precision, lane.method, lane.depth, *spreads)


@contextlib.contextmanager
def started(
    lanes: Sequence[Lane], pythons: Sequence[Path], on_progress: OnProgress
) -> Iterator[tuple[list[Peer], list[str]]]:
    """The peers of `lanes` that are installed in one of `pythons`, and the names of those that are not."""
    with contextlib.ExitStack() as stack:
        peers, absent = [], []
        for lane in lanes:
            name = lane.order.peer
            if name in absent:
                continue
            on_progress(Progress(f"Loading {name}"))
            if peer := start(lane, pythons):
                peers.append(stack.enter_context(contextlib.closing(peer)))
            else:
                absent.append(name)
        yield peers, absent


def _spreads(own: Sequence[float], plain: Sequence[float]) -> tuple[Spread, Spread]:
    return Spread.of(own), Spread.of([mine / theirs for mine, theirs in zip(own, plain, strict=True)])
