"""Figures computed from events, with vLLM's names and definitions.

A step counts as a draft when it drafted at least one token; the prefill and plain steps do not. Acceptance figures are
therefore None, not zero, where nothing was drafted.
"""

from collections import deque
from collections.abc import Iterable

import msgspec

from peagle_cli.trace.events import DraftBatch, Event


class Summary(msgspec.Struct, frozen=True):
    """The figures of one reply, or of several added up; the fields of `metrics` in `--output json`.

    `tokens_per_second` is the decoding speed: tokens after the first over seconds after the first (the inverse of
    vLLM's time per output token), None until there is a second token. `mean_acceptance_length` is
    1 + accepted / drafts, the tokens a drafting step yields on average, at most K + 1: the effective depth.
    `per_position_acceptance[i]` is the share of drafts that accepted more than i tokens, of those that drafted that
    many: not conditional on the positions before it. `acceptance_histogram[n]` counts the drafts that accepted n.
    Times are seconds on the lanes' own clocks, added up over steps; the prefill is in neither `draft_s` nor `verify_s`.
    """

    tokens: int
    steps: int
    drafts: int
    draft_tokens: int
    accepted_tokens: int
    tokens_per_second: float | None
    mean_acceptance_length: float | None
    draft_acceptance_rate: float | None
    per_position_acceptance: tuple[float, ...]
    acceptance_histogram: tuple[int, ...]
    time_to_first_token_s: float | None
    prefill_s: float
    draft_s: float
    verify_s: float
    elapsed_s: float


class Metrics:
    """A running fold over one lane's events; `summary()` at any moment gives the figures so far."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.tokens = 0
        self.steps = 0
        self.drafts = 0
        self.draft_tokens = 0
        self.accepted_tokens = 0
        self.prefill_s = 0.0
        self.draft_s = 0.0
        self.verify_s = 0.0
        self.elapsed_s = 0.0
        self.time_to_first_token_s: float | None = None
        self._first_tokens = 0
        self._reached: list[int] = []  # drafts that drafted more than i tokens
        self._passed: list[int] = []  # drafts that accepted more than i tokens
        self._histogram: list[int] = []
        for event in events:
            self.add(event)

    def add(self, event: Event) -> None:
        """Take one more event into account; only batches carry figures."""
        if not isinstance(event, DraftBatch):
            return
        self.elapsed_s = event.clock_s
        if self.time_to_first_token_s is None and event.emitted:
            self.time_to_first_token_s = event.clock_s
            self._first_tokens = event.emitted
        self.tokens += event.emitted
        if event.prefill:
            self.prefill_s += event.verify_s
            return
        self.steps += 1
        self.draft_s += event.draft_s
        self.verify_s += event.verify_s
        if event.drafted:
            self._add_draft(len(event.drafted), event.accepted)

    def _add_draft(self, drafted: int, accepted: int) -> None:
        self.drafts += 1
        self.draft_tokens += drafted
        self.accepted_tokens += accepted
        grow = drafted - len(self._reached)
        if grow > 0:
            self._reached += [0] * grow
            self._passed += [0] * grow
            self._histogram += [0] * (drafted + 1 - len(self._histogram))
        for i in range(drafted):
            self._reached[i] += 1
            self._passed[i] += i < accepted
        self._histogram[accepted] += 1

    @property
    def tokens_per_second(self) -> float | None:
        """Decoding speed so far, in tokens per second; None before the second token."""
        if self.time_to_first_token_s is None or self.tokens <= self._first_tokens:
            return None
        seconds = self.elapsed_s - self.time_to_first_token_s
        return (self.tokens - self._first_tokens) / seconds if seconds > 0 else None

    @property
    def mean_acceptance_length(self) -> float | None:
        """Tokens per drafting step, the target's own included; None when nothing was drafted."""
        return 1 + self.accepted_tokens / self.drafts if self.drafts else None

    @property
    def draft_acceptance_rate(self) -> float | None:
        """The share of drafted tokens that were accepted; None when nothing was drafted."""
        return self.accepted_tokens / self.draft_tokens if self.draft_tokens else None

    @property
    def mean_draft_s(self) -> float | None:
        """Seconds in the drafter per step; None before the first step."""
        return self.draft_s / self.steps if self.steps else None

    @property
    def mean_verify_s(self) -> float | None:
        """Seconds in the target per step; None before the first step."""
        return self.verify_s / self.steps if self.steps else None

    @property
    def per_position_acceptance(self) -> tuple[float, ...]:
        """For each draft position, the share of drafts reaching it that accepted it and all before it."""
        return tuple(p / n for p, n in zip(self._passed, self._reached, strict=True))

    @property
    def drafts_per_position(self) -> tuple[int, ...]:
        """For each draft position, the number of drafts reaching it: what its acceptance is a share of."""
        return tuple(self._reached)

    def summary(self) -> Summary:
        """All figures as of now."""
        return Summary(
            tokens=self.tokens,
            steps=self.steps,
            drafts=self.drafts,
            draft_tokens=self.draft_tokens,
            accepted_tokens=self.accepted_tokens,
            tokens_per_second=self.tokens_per_second,
            mean_acceptance_length=self.mean_acceptance_length,
            draft_acceptance_rate=self.draft_acceptance_rate,
            per_position_acceptance=self.per_position_acceptance,
            acceptance_histogram=tuple(self._histogram),
            time_to_first_token_s=self.time_to_first_token_s,
            prefill_s=self.prefill_s,
            draft_s=self.draft_s,
            verify_s=self.verify_s,
            elapsed_s=self.elapsed_s,
        )


class RollingSpeed:
    """Tokens per second over the last `window_s` seconds of the lane's clock."""

    def __init__(self, window_s: float = 1.0) -> None:
        self.window_s = window_s
        self._batches: deque[tuple[float, int]] = deque()  # begin on the lane's clock, tokens
        self._tokens = 0  # of those batches
        self._last_s: float | None = None

    def copy(self) -> "RollingSpeed":
        """One that can go on otherwise."""
        copied = RollingSpeed(self.window_s)
        copied._batches, copied._tokens, copied._last_s = self._batches.copy(), self._tokens, self._last_s
        return copied

    def add(self, batch: DraftBatch) -> float | None:
        """Take one more batch into account; the speed as of its end, None while only the prefill is known."""
        begin, self._last_s = self._last_s, batch.clock_s
        if begin is None or batch.prefill:
            return None
        self._batches.append((begin, batch.emitted))
        self._tokens += batch.emitted
        while len(self._batches) > 1 and self._batches[0][0] < batch.clock_s - self.window_s:
            self._tokens -= self._batches.popleft()[1]
        seconds = batch.clock_s - self._batches[0][0]
        return self._tokens / seconds if seconds > 0 else None
