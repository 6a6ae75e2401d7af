"""Tokens per second of the engine, plain and with every drafter, and of other programs, on the same prompts.

Prompt by prompt every lane answers once, another beginning each time, so that what disturbs the machine for a while
disturbs all alike. No two run at once. Before the first prompt each lane answers it shortly, which is in no figure. A
program that breaks is left out from then on, and the others go on.
"""

import contextlib
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import TypeVar

from peagle_cli.bench.peers import Lane, Peer, Reply, start
from peagle_cli.bench.report import Absent, Speed, Spread, Step
from peagle_cli.engine.protocol import Engine, LaneSetting, Request
from peagle_cli.errors import PeagleError
from peagle_cli.models.progress import OnProgress, Progress
from peagle_cli.trace.events import DraftBatch, Failed, Message, Sampling, Started
from peagle_cli.trace.lossless import in_common
from peagle_cli.trace.rounds import Setting

_Prompt = TypeVar("_Prompt")

WARM_UP_TOKENS = 24
ENOUGH_PROMPTS = 3
"""So many replies that all begin otherwise than ours are no matter of rounding: such a program does something else."""


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
    """The engine with one setting. `serial` numbers the replies of all settings: a lane's name that came back would
    find the cache of the reply before, and spare itself the prompt."""

    def __init__(self, engine: Engine, setting: Setting, serial: Iterator[int]) -> None:
        self.setting = setting
        self._engine = engine
        self._serial = serial
        self._steps: list[Step] = []

    def reply(self, prompt: str, tokens: int) -> Reply:
        """Answer, with no cache of an earlier reply."""
        lane = LaneSetting(f"bench {next(self._serial)}", *self.setting)
        _, batches, seconds = ask(self._engine, (Message("user", prompt),), lane, tokens)
        steps = batches[1:]
        if steps and tokens > WARM_UP_TOKENS:
            draft, verify = (sum(getattr(batch, part) for batch in steps) for part in ("draft_s", "verify_s"))
            rest = seconds - sum(batch.draft_s + batch.verify_s for batch in batches)
            emitted = sum(batch.emitted for batch in steps)
            self._steps.append(Step(emitted / len(steps), draft / len(steps), verify / len(steps), rest / len(batches)))
        return Reply(tuple(token.id for batch in batches for token in batch.tokens), seconds)

    @property
    def step(self) -> Step | None:
        """Where its steps' time went."""
        names = Step.__struct_fields__
        return Step(*(median(getattr(step, name) for step in self._steps) for name in names)) if self._steps else None


@dataclass
class _Runner:
    """One of the programs in a test: how it is asked, and what came of it."""

    program: Ours | Peer
    reply: Callable[[int, int], Reply]
    replies: list[Reply] = field(default_factory=list)
    broken: str = ""


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
        serial = itertools.count(1)
        self._ours = [Ours(engine, setting, serial) for setting in settings]
        self._peers = peers
        self._prompts = prompts
        self._tokens = tokens
        self._on_progress = on_progress

    def measure(self) -> tuple[tuple[Speed, ...], tuple[Absent, ...]]:
        """Run all of it; tells the peers that broke apart. Raises `PeagleError` when the engine fails."""
        runners = self._runners()
        for runner in runners:
            _ask(runner, 0, WARM_UP_TOKENS)
        for i in range(len(self._prompts)):
            self._on_progress(Progress("Measuring speeds", i, len(self._prompts)))
            for j in range(len(runners)):
                runner = runners[(i + j) % len(runners)]
                if reply := _ask(runner, i, self._tokens):
                    runner.replies.append(reply)
        plain = runners[0]
        broken = []
        for runner in runners:
            if isinstance(runner.program, Peer):
                if not runner.broken and _says_something_else(runner, plain):
                    runner.broken = "it begins every reply otherwise than plain decoding by peagle"
                if runner.broken:
                    broken.append(_absent(runner.program.lane, runner.broken))
        return tuple(self._speed(runner, plain) for runner in runners if not runner.broken), tuple(broken)

    def _runners(self) -> list[_Runner]:
        ids = [self._ids(prompt) for prompt in self._prompts] if self._peers else []
        return [
            *(_Runner(ours, partial(_by_prompt, ours.reply, self._prompts)) for ours in self._ours),
            *(_Runner(peer, partial(_by_prompt, peer.reply, ids)) for peer in self._peers),
        ]

    def _ids(self, prompt: str) -> list[int]:
        started, _, _ = ask(self._engine, (Message("user", prompt),), LaneSetting("bench", "none", 0), 1)
        return list(started.prompt_ids)

    def _speed(self, runner: _Runner, plain: _Runner) -> Speed:
        rates, plain_rates = ([len(r.ids) / r.seconds for r in each.replies] for each in (runner, plain))
        over_plain = Spread.of([mine / theirs for mine, theirs in zip(rates, plain_rates, strict=True)])
        program = runner.program
        info = self._engine.info
        if isinstance(program, Peer):
            name, version, precision = program.lane.order.peer, program.version, program.precision
            method, depth = program.lane.method, program.lane.depth
        else:
            name, version, precision = "peagle", info.versions.get("peagle", ""), info.machine.precision
            method, depth = program.setting
        return Speed(
            program=name,
            version=version,
            precision=precision,
            method=method,
            depth=depth,
            tokens_per_second=Spread.of(rates),
            over_plain=over_plain,
            same_tokens=median(_same(runner, plain)),
            step=None if isinstance(program, Peer) else program.step,
        )


@contextlib.contextmanager
def started(
    lanes: Sequence[Lane], pythons: Sequence[Path], on_progress: OnProgress
) -> Iterator[tuple[list[Peer], list[Absent]]]:
    """The peers of `lanes` that run in one of `pythons`, and those that do not."""
    with contextlib.ExitStack() as stack:
        peers, absent = [], []
        for lane in lanes:
            on_progress(Progress(f"Loading {lane.order.peer}"))
            try:
                peer = start(lane, pythons)
            except PeagleError as error:
                absent.append(_absent(lane, error.message))
                continue
            if peer:
                peers.append(stack.enter_context(contextlib.closing(peer)))
            else:
                absent.append(_absent(lane, "not installed"))
        yield peers, absent


def _ask(runner: _Runner, prompt: int, tokens: int) -> Reply | None:
    """Its reply; None of a peer that has broken, now or before."""
    if runner.broken:
        return None
    try:
        return runner.reply(prompt, tokens)
    except PeagleError as error:
        if isinstance(runner.program, Ours):
            raise
        runner.broken = error.message
        return None


def _by_prompt(reply: Callable[[_Prompt, int], Reply], prompts: Sequence[_Prompt], i: int, tokens: int) -> Reply:
    return reply(prompts[i], tokens)


def _absent(lane: Lane, reason: str) -> Absent:
    return Absent(lane.order.peer, lane.method, lane.depth, reason)


def _says_something_else(runner: _Runner, plain: _Runner) -> bool:
    return len(plain.replies) >= ENOUGH_PROMPTS and not any(_same(runner, plain))


def _same(runner: _Runner, plain: _Runner) -> list[int]:
    """For each prompt, how many tokens the two replies begin with in common."""
    return [in_common(mine.ids, theirs.ids) for mine, theirs in zip(runner.replies, plain.replies, strict=True)]
