"""A race behind its screen: what the engine is to do next, what the lanes show, and what it all comes to.

Pure: knows events and requests, no screen and no thread.
"""

from collections.abc import Callable, Generator
from enum import Enum, auto
from typing import NamedTuple

import msgspec

from peagle_cli.engine.contest import SWEEP_STEPS, Contest, rounds, sweep_requests
from peagle_cli.engine.protocol import Command, EngineInfo, LaneSetting, Request, Stop
from peagle_cli.trace.comparison import Report, compare
from peagle_cli.trace.events import DraftBatch, Event, Finished, Started
from peagle_cli.trace.rounds import PLAIN, Round, Setting, name_of
from peagle_cli.trace.verdict import Speeds
from peagle_cli.tui.conversation import CANDIDATES_SHOWN, Reply
from peagle_cli.tui.model import Transcript

_WARM_UP_TOKENS = 8


class Stage(Enum):
    """What the engine is asked for: to warm up, to race, to measure the costs of other depths; or nothing more."""

    WARMING = auto()
    RACING = auto()
    MEASURING = auto()
    DONE = auto()


class Runner:
    """One lane as it is shown: its reply to the prompt in view."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.clear()

    @property
    def name(self) -> str:
        """For people: "P-EAGLE 7"."""
        return name_of(self.setting)

    @property
    def clock_s(self) -> float:
        """Seconds on its own clock."""
        return self.reply.metrics.elapsed_s

    @property
    def finished(self) -> bool:
        """Whether the reply has come to its end."""
        return isinstance(self.reply.outcome, Finished)

    def clear(self) -> None:
        """Begin another reply."""
        self.reply = Reply(LaneSetting(self.name, *self.setting))
        self.transcript = Transcript()

    def add(self, event: Event, recall: Callable[[int], Event] | None = None, place: int = 0) -> None:
        """Take in the next event; `recall` and `place` are those of `Transcript.add_batch`."""
        self.reply.add(event)
        match event:
            case Started():
                self.transcript.begin_reply(event.sampling)
            case DraftBatch():
                self.transcript.add_batch(event, recall, place)


class Standing(NamedTuple):
    """A lane's place: its speed (the median over complete rounds, in the first one the speed so far), how many times
    plain decoding's and the fastest EAGLE-3 lane's that is, and its tokens per step."""

    runner: Runner
    tokens_per_second: float | None
    over_plain: float | None
    over_eagle3: float | None
    per_step: float | None


class Race:
    """Gives out requests, and takes in the events they cause.

    `info` is the engine that runs them. `round` counts the rounds begun; `report` is there when all have been run, and
    once more, with better founded advice, when costs have been measured.
    """

    def __init__(self, contest: Contest, info: EngineInfo) -> None:
        self.contest = contest
        self.info = info
        self.stage = Stage.WARMING
        self.runners = [Runner(setting) for setting in contest.settings]
        self.prompt = ""
        self.round = 0
        self.report: Report | None = None
        self._by_setting = {runner.setting: runner for runner in self.runners}
        self._lanes: dict[str, Runner] = {}
        self._current: Round | None = None
        self._complete: list[Round] = []
        self._sweep: list[DraftBatch] = []
        self._taken: dict[str, int] = {}
        self._requests = self._schedule()

    def next_request(self) -> Request | None:
        """What to ask the engine now that it has answered the last request; None when there is nothing more."""
        return next(self._requests, None)

    def add(self, event: Event) -> list[Command]:
        """Take in an event of the request that runs; returns what to tell the engine."""
        match self.stage:
            case Stage.RACING:
                self._race(event)
            case Stage.MEASURING if isinstance(event, DraftBatch) and not event.prefill:
                self._sweep.append(event)
                self._taken[event.lane] += 1
                return [Stop()] if min(self._taken.values()) == SWEEP_STEPS else []
        return []

    def cancel(self) -> None:
        """Ask for nothing more; the round that runs does not count."""
        self._requests.close()
        self._current = None
        self._finish()

    def standings(self) -> list[Standing]:
        """The lanes, the fastest first; those without a speed last, in their own order."""
        speeds = Speeds(self._complete) if self._complete else None
        by_setting = {
            r.setting: speeds.median(r.setting) if speeds else r.reply.metrics.tokens_per_second for r in self.runners
        }
        plain = by_setting.get(PLAIN)
        eagle3 = max((s for (method, _), s in by_setting.items() if method == "eagle3" and s), default=None)
        standings = [
            Standing(r, speed, _ratio(speed, plain), _ratio(speed, eagle3), r.reply.metrics.mean_acceptance_length)
            for r in self.runners
            for speed in (by_setting[r.setting],)
        ]
        return sorted(standings, key=lambda standing: -(standing.tokens_per_second or 0.0))

    @property
    def max_tokens(self) -> int:
        """How many tokens a reply may have."""
        return self.contest.max_tokens

    @property
    def last_round(self) -> Round | None:
        """The latest complete round: the one in view, once all is done."""
        return self._complete[-1] if self._complete else None

    def _schedule(self) -> Generator[Request]:
        first = True
        for current, request in rounds(self.contest):
            if first:
                yield msgspec.structs.replace(request, max_tokens=min(_WARM_UP_TOKENS, request.max_tokens))
                first = False
            self._begin(current, request)
            yield msgspec.structs.replace(request, candidates=max(request.candidates, CANDIDATES_SHOWN))
            self._complete.append(current)
        self._current = None
        self._finish()
        self.stage = Stage.MEASURING
        for request in sweep_requests(self.contest, self.info):
            self._taken = dict.fromkeys((lane.name for lane in request.lanes), 0)
            yield request
        self._finish()

    def _begin(self, current: Round, request: Request) -> None:
        self.stage = Stage.RACING
        self.round += 1
        self.prompt = request.messages[-1].content
        self._current = current
        for runner in self.runners:
            runner.clear()
        self._lanes = {
            lane.name: self._by_setting[(lane.method, lane.depth) if lane.method != "none" else PLAIN]
            for lane in request.lanes
        }

    def _race(self, event: Event) -> None:
        assert self._current is not None
        self._current.add(event)
        self._lanes[event.lane].add(event)

    def _finish(self) -> None:
        self.stage = Stage.DONE
        if self._complete:
            self.report = compare(self._complete, self._repeats(), self.info.footprints, self._sweep)

    def _repeats(self) -> int:
        """How often each prompt has been asked; where the race was stopped early, rounds are counted singly."""
        return self.contest.repeats if len(self._complete) == self.contest.size else 1


class PhotoFinish:
    """A round once more, all lanes at once and in true proportion: each token appears when its lane's clock says.

    `seconds` is how long the slowest lane took.
    """

    def __init__(self, race: Race, finished: Round) -> None:
        self._runners = [(runner, finished.replies[runner.setting]) for runner in race.runners]
        self._shown = [0] * len(self._runners)
        self.seconds = max(reply.metrics.elapsed_s for _, reply in self._runners)
        for runner, reply in self._runners:
            runner.clear()
            runner.add(reply.started)

    def show(self, clock_s: float) -> bool:
        """Let the lanes run until their clocks show `clock_s`; returns whether there is more to come."""
        for i, (runner, reply) in enumerate(self._runners):
            while self._shown[i] < len(reply.batches) and reply.batches[self._shown[i]].clock_s <= clock_s:
                runner.add(reply.batches[self._shown[i]])
                self._shown[i] += 1
            if self._shown[i] == len(reply.batches) and reply.finished:
                runner.add(reply.finished)
        return any(shown < len(reply.batches) for shown, (_, reply) in zip(self._shown, self._runners, strict=True))


def _ratio(speed: float | None, base: float | None) -> float | None:
    return speed / base if speed and base else None
