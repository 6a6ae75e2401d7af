"""The course of a reply or a conversation, batch by batch: what any stretch of it came to, in constant time.

Sums run from the beginning, so that a stretch is a difference. A timeline of any width is drawn from a conversation of
any length by asking for as many stretches as it has columns.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import NamedTuple

from peagle_cli.trace.events import DraftBatch, Event, Started
from peagle_cli.trace.rounds import PLAIN, Setting


class Stretch(NamedTuple):
    """What the batches from `begin` to before `end` came to, with the definitions of `metrics.py`.

    `tokens` and `seconds` are those after each reply's first token; the seconds are those of the lanes' clocks.
    """

    begin: int
    end: int
    drafts: int
    draft_tokens: int
    accepted_tokens: int
    tokens: int
    seconds: float

    @property
    def mean_accepted(self) -> float | None:
        """Accepted tokens per draft; None where nothing was drafted."""
        return self.accepted_tokens / self.drafts if self.drafts else None

    @property
    def mean_acceptance_length(self) -> float | None:
        """Tokens per drafting step, the target's own included: the effective depth; None where nothing was drafted."""
        return 1 + self.accepted_tokens / self.drafts if self.drafts else None

    @property
    def tokens_per_second(self) -> float | None:
        """Decoding speed; None where no time passed after the first token."""
        return self.tokens / self.seconds if self.seconds > 0 else None


class Segment(NamedTuple):
    """From the batch `begin` on, drafts are made by this setting, until the next segment.

    `opens_reply` says that a reply begins with it.
    """

    begin: int
    setting: Setting
    opens_reply: bool


class CourseMark(NamedTuple):
    """Where a course was: `batches` long, with a reply about to open, its last batch at so many seconds."""

    batches: int
    opening: bool
    clock_s: float | None


class Course:
    """A running fold over one lane's events, or over replies that follow each other. `len` is the number of batches.

    `segments` begin where a reply does and wherever method or depth changed; `deepest` is the deepest setting so far.
    """

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.segments: list[Segment] = []
        self.deepest = 0
        self._drafts = array("q", [0])
        self._draft_tokens = array("q", [0])
        self._accepted = array("q", [0])
        self._tokens = array("q", [0])
        self._seconds = array("d", [0.0])
        self._replies: list[int] = []  # their first batches
        self._opening = True
        self._clock_s: float | None = None  # of the last batch, once there is a token
        for event in events:
            self.add(event)

    def __len__(self) -> int:
        return len(self._drafts) - 1

    @property
    def replies(self) -> int:
        """How many replies it has."""
        return len(self._replies)

    def add(self, event: Event) -> None:
        """Take one more event into account."""
        if isinstance(event, Started):
            self._opening = True
        elif isinstance(event, DraftBatch):
            self._mark(event)
            self._count(event)

    def mark(self) -> CourseMark:
        """Where it is now."""
        return CourseMark(len(self), self._opening, self._clock_s)

    def until(self, mark: CourseMark) -> "Course":
        """The course as it was at `mark`, to go on otherwise."""
        course = Course()
        course.segments = self.segments[: bisect_left(self.segments, mark.batches, key=lambda segment: segment.begin)]
        course.deepest = max((depth for _, (_, depth), _ in course.segments), default=0)
        course._drafts = self._drafts[: mark.batches + 1]
        course._draft_tokens = self._draft_tokens[: mark.batches + 1]
        course._accepted = self._accepted[: mark.batches + 1]
        course._tokens = self._tokens[: mark.batches + 1]
        course._seconds = self._seconds[: mark.batches + 1]
        course._replies = self._replies[: bisect_left(self._replies, mark.batches)]
        course._opening, course._clock_s = mark.opening, mark.clock_s
        return course

    def stretch(self, begin: int, end: int) -> Stretch:
        """What the batches from `begin` to before `end` came to."""
        return Stretch(
            begin,
            end,
            self._drafts[end] - self._drafts[begin],
            self._draft_tokens[end] - self._draft_tokens[begin],
            self._accepted[end] - self._accepted[begin],
            self._tokens[end] - self._tokens[begin],
            self._seconds[end] - self._seconds[begin],
        )

    def segment_at(self, batch: int) -> Segment:
        """The segment that a batch is in."""
        return self.segments[self._segment_index(batch)]

    def begins_reply(self, begin: int, end: int) -> bool:
        """Whether a reply begins with one of the batches from `begin` to before `end`."""
        return bisect_left(self._replies, begin) < bisect_left(self._replies, end)

    def reply_of(self, batch: int) -> int:
        """The reply that a batch is part of, counted from 0."""
        return bisect_right(self._replies, batch) - 1

    def step_of(self, batch: int) -> int:
        """The `step` of a batch, which counts from 0 in its reply."""
        return batch - self._replies[self.reply_of(batch)]

    def _segment_index(self, batch: int) -> int:
        return bisect_right(self.segments, batch, key=lambda segment: segment.begin) - 1

    def _mark(self, batch: DraftBatch) -> None:
        setting: Setting = PLAIN if batch.method == "none" else (batch.method, batch.depth)
        if self._opening or setting != self.segments[-1].setting:
            self.segments.append(Segment(len(self), setting, self._opening))
            self.deepest = max(self.deepest, setting[1])
        if self._opening:
            self._replies.append(len(self))
            self._clock_s = None
        self._opening = False

    def _count(self, batch: DraftBatch) -> None:
        tokens, seconds = (0, 0.0) if self._clock_s is None else (batch.emitted, batch.clock_s - self._clock_s)
        if self._clock_s is not None or batch.emitted:
            self._clock_s = batch.clock_s
        self._drafts.append(self._drafts[-1] + bool(batch.drafted))
        self._draft_tokens.append(self._draft_tokens[-1] + len(batch.drafted))
        self._accepted.append(self._accepted[-1] + batch.accepted)
        self._tokens.append(self._tokens[-1] + tokens)
        self._seconds.append(self._seconds[-1] + seconds)
