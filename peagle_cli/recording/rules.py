"""What must be true of a recording: the order of its records, the ranges of its numbers, and figures that follow from
its events. Whoever reads a checked recording need not doubt any of it, however the file came about.
"""

import math
from collections.abc import Iterable
from typing import Any

import msgspec

from peagle_cli.recording.format import Asked, End, Entry, Happened, Header
from peagle_cli.trace.events import (
    METHOD_NAMES,
    UNKNOWN_ID,
    Candidate,
    Changed,
    DraftBatch,
    Event,
    Failed,
    Finished,
    Machine,
    Sampling,
    Started,
    TargetView,
    Token,
)
from peagle_cli.trace.metrics import Metrics

MAX_LANES = 64
MAX_DEPTH = 1000
MAX_COUNT = 2**31
MAX_SECONDS = 1e9
MAX_NAME = 1000
MAX_TOKEN_TEXT = 1000
_MAX_PROB = 1.001  # computed in half precision, probabilities can come out a little above 1
_SAME = 1e-9  # relative: sums that a later version adds up in another order


class RuleError(Exception):
    """A rule that is broken, as a sentence without its subject, the line: "has ...", "is ..."."""


def check_header(header: Header) -> None:
    """Raise `RuleError` for numbers and names out of range."""
    _require(header.created.tzinfo is not None, "has a start time without a time zone")
    _check_names([header.engine, header.model, *header.drafters.values(), *(header.continues or "",)])
    _check_names(text for item in header.versions.items() for text in item)
    _require(set(header.drafters) == set(header.max_depths), "does not give the depths of just its drafters")
    _require("none" not in header.drafters, "names a drafter for plain decoding")
    for depth in header.max_depths.values():
        _check_range("depth", depth, 0, MAX_DEPTH)
    _check_range("context", header.context, 1, MAX_COUNT)
    _check_machine(header.machine)
    for size in header.terminal or ():
        _check_range("terminal size", size, 1, 10_000)


class Rules:
    """Takes a recording's entries one after the other; raises `RuleError` at the first that cannot stand there."""

    def __init__(self, header: Header) -> None:
        self._header = header
        self._at_s = 0.0
        self._lanes: dict[str, _Lane] | None = None  # those of the request in progress

    def check(self, entry: Entry) -> None:
        """Take the next entry."""
        _check_seconds("at_s", entry.at_s)
        if entry.at_s < self._at_s:
            raise RuleError(f"is at {entry.at_s} s, before the one above it")
        self._at_s = entry.at_s
        match entry:
            case Asked():
                _require(self._lanes is None, "begins a request before the one above has ended")
                self._lanes = _asked_lanes(entry, self._header)
            case Happened():
                self._lane(entry.event.lane).take(entry.event)
            case End():
                self._end(entry)

    def _lane(self, name: str) -> "_Lane":
        _require(self._lanes is not None, "is an event outside of any request")
        lane = (self._lanes or {}).get(name)
        if lane is None:
            raise RuleError(f"is about a lane {_shown(name)} that its request does not have")
        return lane

    def _end(self, end: End) -> None:
        if self._lanes is None:
            raise RuleError("ends a request where none is in progress")
        started = {name: lane.metrics for name, lane in self._lanes.items() if lane.started}
        _require(set(end.metrics) == set(started), "does not give the figures of just the lanes that started")
        for name, metrics in started.items():
            _check_figures(end.metrics[name], metrics)
        self._lanes = None


class _Lane:
    """What one lane of a request has come to."""

    def __init__(self, header: Header) -> None:
        self.started: Started | None = None
        self.metrics = Metrics()
        self._header = header
        self._over = False
        self._steps = 0
        self._clock_s = 0.0

    def take(self, event: Event) -> None:
        _require(not self._over, "is an event of a lane that has ended")
        if isinstance(event, Started):
            _require(self.started is None, "starts a lane again")
            _check_started(event, self._header)
            self.started = event
            return
        if self.started is None:
            raise RuleError("is an event of a lane that has not started")
        match event:
            case DraftBatch():
                self._take_batch(event, self.started)
            case Changed():
                _check_changed(event)
            case Finished() | Failed():
                self._over = True

    def _take_batch(self, batch: DraftBatch, started: Started) -> None:
        if batch.step != self._steps:
            raise RuleError(f"is step {_shown(batch.step)} where step {self._steps} was due")
        _require(batch.clock_s >= self._clock_s, "has a clock that runs backwards")
        for name in ("draft_s", "verify_s", "clock_s"):
            _check_seconds(name, getattr(batch, name))
        _require(batch.method == "none" or batch.method in started.drafters, "drafts by a method without a drafter")
        _check_range("depth", batch.depth, 0, MAX_DEPTH)
        _check_counts(batch, started)
        _check_tokens((*batch.drafted, batch.bonus))
        for view in batch.target:
            _check_view(view)
        self.metrics.add(batch)
        self._steps += 1
        self._clock_s = batch.clock_s


def _asked_lanes(asked: Asked, header: Header) -> dict[str, _Lane]:
    _require(bool(asked.messages), "asks nothing")
    _require(0 < len(asked.lanes) <= MAX_LANES, f"has {len(asked.lanes)} lanes, not 1 to {MAX_LANES}")
    _require(len(set(asked.lanes)) == len(asked.lanes), "has two lanes of one name")
    _check_names(asked.lanes)
    _check_range("candidates", asked.candidates, 0, MAX_COUNT)
    return {name: _Lane(header) for name in asked.lanes}


def _check_started(started: Started, header: Header) -> None:
    for name in ("engine", "model", "drafters", "max_depths", "machine", "versions"):
        _require(getattr(started, name) == getattr(header, name), f"has another {name} than the header")
    _require(started.method == "none" or started.method in started.drafters, "starts with a method without a drafter")
    _check_range("depth", started.depth, 0, MAX_DEPTH)
    _check_range("max_tokens", started.max_tokens, 1, MAX_COUNT)
    _check_range("reused", started.reused, 0, len(started.prompt_ids))
    _check_ids(started.prompt_ids)
    _check_sampling(started.sampling)


def _check_counts(batch: DraftBatch, started: Started) -> None:
    drafted = len(batch.drafted)
    _require(drafted <= batch.depth, f"drafts {drafted} tokens at depth {batch.depth}")
    _require(batch.method != "none" or not drafted, "drafts tokens by plain decoding")
    _require(0 <= batch.accepted <= drafted, f"accepts {_shown(batch.accepted)} of {drafted} drafted tokens")
    most = batch.accepted + 1
    _require(0 <= batch.emitted <= most, f"emits {_shown(batch.emitted)} tokens where there are {most}")
    views = len(batch.target)
    _require(views in (0, batch.accepted, drafted), f"has {views} views of {drafted} drafted tokens")
    _check_range("prefill", batch.prefill, 0, len(started.prompt_ids))
    _require(not (batch.prefill and (batch.step or drafted)), "is a prefill that is not the first step or that drafts")


def _check_changed(changed: Changed) -> None:
    for value in (changed.old, changed.new):
        if changed.what == "depth":
            _require(isinstance(value, int) and 0 <= value <= MAX_DEPTH, f"changes to or from depth {_shown(value)}")
        else:
            _require(value in METHOD_NAMES, f"changes to or from a method {_shown(value)}")


def _check_figures(told: dict[str, Any], metrics: Metrics) -> None:
    """What was told must follow from the events; figures that only one of two versions knows are not compared."""
    for name, value in msgspec.to_builtins(metrics.summary()).items():
        if name in told and not _same(told[name], value):
            raise RuleError(f"gives {_shown(told[name])} as {name}, but its events come to {_shown(value)}")


def _same(told: Any, computed: Any) -> bool:
    if isinstance(computed, list | tuple):
        return isinstance(told, list) and len(told) == len(computed) and all(map(_same, told, computed))
    if isinstance(computed, float) and isinstance(told, int | float):
        return math.isclose(told, computed, rel_tol=_SAME, abs_tol=_SAME)
    return type(told) is type(computed) and bool(told == computed)


def _check_machine(machine: Machine) -> None:
    _check_names([machine.device, machine.name, machine.dtype, machine.weights])
    _check_range("threads", machine.threads, 0, MAX_COUNT)


def _check_sampling(sampling: Sampling) -> None:
    _require(0 <= sampling.temperature <= MAX_SECONDS, f"has a temperature of {sampling.temperature}")
    _require(0 < sampling.top_p <= 1, f"has a top_p of {sampling.top_p}")
    _check_range("top_k", sampling.top_k, 0, MAX_COUNT)
    _check_range("seed", sampling.seed or 0, 0, 2**63)


def _check_tokens(tokens: Iterable[Token]) -> None:
    for token in tokens:
        _check_choices((token, *token.alternatives))


def _check_choices(choices: Iterable[Token | Candidate]) -> None:
    """Tokens that were chosen or could have been: plain conditions, for a recording has millions of them."""
    for choice in choices:
        if not (0 <= choice.id < MAX_COUNT or choice.id == UNKNOWN_ID):
            raise RuleError(f"has a token id of {_shown(choice.id)}")
        if len(choice.text) > MAX_TOKEN_TEXT:
            raise RuleError(f"has a token of {len(choice.text)} characters")
        if choice.prob is not None and not 0 <= choice.prob <= _MAX_PROB:
            raise RuleError(f"has a probability of {choice.prob}")


def _check_view(view: TargetView) -> None:
    _require(0 <= view.prob <= _MAX_PROB, f"has a probability of {view.prob}")
    _require(view.threshold is None or 0 <= view.threshold <= 1, f"has a threshold of {view.threshold}")
    _check_choices(view.candidates)


def _check_ids(ids: Iterable[int]) -> None:
    for id in ids:
        if not 0 <= id < MAX_COUNT:
            raise RuleError(f"has a token id of {_shown(id)}")


def _check_names(names: Iterable[str]) -> None:
    for name in names:
        _require(len(name) <= MAX_NAME, f"has a name of {len(name)} characters")


def _check_seconds(name: str, seconds: float) -> None:
    if not 0 <= seconds <= MAX_SECONDS:
        raise RuleError(f"has a {name} of {seconds}")


def _check_range(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise RuleError(f"has a {name} of {_shown(value)}, not {low} to {high}")


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise RuleError(otherwise)


def _shown(value: object) -> str:
    """A value from the file, short enough for a sentence."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
