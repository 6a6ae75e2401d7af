"""The requests of a comparison: the same prompts answered in several lanes, and steps at every depth for their costs.

A round is one request, so that its lanes take turns step by step (the one whose own clock is behind goes next) and
whatever disturbs the machine disturbs them alike. Every reply has a lane name of its own: names that return would
find the caches of the reply before, and spare themselves the prompt.
"""

import contextlib
import itertools
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass

from peagle_cli.engine.lanes import PUBLISHED_DEPTHS
from peagle_cli.engine.protocol import Engine, EngineInfo, LaneSetting, Request
from peagle_cli.prompts import Prompt
from peagle_cli.trace.events import DraftBatch, Event, Failed, Message, Method, Sampling
from peagle_cli.trace.lossless import CANDIDATES
from peagle_cli.trace.rounds import PLAIN, Round, Setting

DEPTHS = tuple(depth for method, depth in PUBLISHED_DEPTHS.items() if method != "none")
"""Where nothing else is asked for: every drafter at the depths at which either is at its best as published."""

SWEEP_STEPS = 6
"""Steps whose costs are measured at every depth, on the way up and once more on the way down."""


@dataclass(frozen=True)
class Contest:
    """Who runs on what: the lanes, the prompts, how often, and how replies are made.

    `history` is the conversation that every prompt continues.
    """

    settings: tuple[Setting, ...]
    prompts: tuple[Prompt, ...]
    repeats: int
    sampling: Sampling
    max_tokens: int
    history: tuple[Message, ...] = ()

    @property
    def size(self) -> int:
        """How many rounds there are."""
        return self.repeats * sum(len(prompt.turns) for prompt in self.prompts)

    @property
    def candidates(self) -> int:
        """How many candidates the events must carry, so that greedy replies can be held against plain decoding."""
        return CANDIDATES if self.sampling.temperature == 0 and PLAIN in self.settings else 0


def settings_for(
    drafters: Iterable[Method], methods: Sequence[Method], depths: Sequence[int], baseline: bool
) -> tuple[Setting, ...]:
    """Every method (those that there are drafters for, when none is named) at every depth, behind plain decoding
    if that is wanted. A depth of 0 is plain decoding."""
    methods = methods or sorted(drafters)
    pairs = [(method, depth) for method in methods for depth in depths]
    settings: list[Setting] = [PLAIN if method == "none" or depth == 0 else (method, depth) for method, depth in pairs]
    return tuple(dict.fromkeys([PLAIN, *settings] if baseline else settings))


def rounds(contest: Contest) -> Iterator[tuple[Round, Request]]:
    """Every round, with its request. Whoever asks for the next must have added the events of the one before: in a
    conversation of several turns, all lanes go on with the first lane's reply."""
    serial = itertools.count(1)
    orders = itertools.cycle(_rotations(contest.settings))
    for _, prompt in itertools.product(range(contest.repeats), contest.prompts):
        messages = list(contest.history)
        for turn in prompt.turns:
            messages.append(Message("user", turn))
            number = next(serial)
            lanes = tuple(LaneSetting(lane_name(setting, number), *setting) for setting in next(orders))
            current = Round(prompt.category)
            yield (
                current,
                Request(tuple(messages), lanes, contest.sampling, contest.max_tokens, contest.candidates),
            )
            messages.append(Message("assistant", current.replies[contest.settings[0]].text))


def sweep_requests(contest: Contest, info: EngineInfo) -> Iterator[Request]:
    """Requests for every depth of the contest's methods, on its first prompt, up and down again: what disturbs the
    machine for a moment then meets each depth once at most. Each can be ended as soon as every lane has taken
    `SWEEP_STEPS` steps. Lanes keep their names, and so their caches: only the first requests process the prompt.
    """
    methods: list[Method] = ["none", *sorted({method for method, _ in contest.settings if method != "none"})]
    messages = (*contest.history, Message("user", contest.prompts[0].turns[0]))
    # Where lanes do not take turns, a method may have to be loaded: all of its depths, then, before the next method's.
    for group in [methods] if info.takes_turns else [[method] for method in methods]:
        deepest = max(info.max_depths.get(method, 0) for method in group)
        for depth in (*range(deepest + 1), *reversed(range(deepest + 1))):
            able = [m for m in group if (m == "none") == (depth == 0) and depth <= info.max_depths.get(m, 0)]
            lanes = tuple(LaneSetting(f"sweep {method}", method, depth) for method in able)
            if lanes:
                yield Request(messages, lanes, contest.sampling, SWEEP_STEPS * (depth + 1) + 1)


def play(engine: Engine, contest: Contest) -> Generator[tuple[Round, Event]]:
    """Run all rounds; each event comes with its round, which has already taken it into account.

    Raises `PeagleError` when a lane fails, `BadInputError` for what the engine refuses.
    """
    for current, request in rounds(contest):
        for event in engine.run(request):
            _check(event)
            current.add(event)
            yield current, event


def sweep(engine: Engine, contest: Contest) -> Iterator[DraftBatch]:
    """A few steps at every depth of the contest's methods."""
    for request in sweep_requests(contest, engine.info):
        with contextlib.closing(engine.run(request)) as events:
            taken = dict.fromkeys((lane.name for lane in request.lanes), 0)
            for event in events:
                _check(event)
                if isinstance(event, DraftBatch) and not event.prefill:
                    taken[event.lane] += 1
                    yield event
                    if min(taken.values()) >= SWEEP_STEPS:
                        break


def lane_name(setting: Setting, number: int) -> str:
    """What a lane's reply of round `number` is called in the events: "peagle 7 #3"."""
    method, depth = setting
    return f"{method} {depth} #{number}"


def _check(event: Event) -> None:
    if isinstance(event, Failed):
        raise event.error


def _rotations(settings: Sequence[Setting]) -> list[tuple[Setting, ...]]:
    """The lanes in every order that lets each begin once."""
    return [(*settings[i:], *settings[:i]) for i in range(len(settings))]
