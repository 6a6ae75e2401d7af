"""All that is told of a reply, or of replies that follow each other, in one fold over their events."""

from collections.abc import Iterable
from copy import deepcopy
from typing import NamedTuple

from peagle_cli.trace.by_kind import AcceptanceByKind
from peagle_cli.trace.course import Course, CourseMark
from peagle_cli.trace.events import Event
from peagle_cli.trace.metrics import Metrics

FEW = 20
"""Of fewer drafts than these, a share tells little: its standard error can be over 11 percentage points."""


class TallyMark(NamedTuple):
    """Where a tally was."""

    metrics: Metrics
    course: CourseMark
    by_kind: AcceptanceByKind


class Tally:
    """`metrics` over all of it, its `course` batch by batch, and acceptance `by_kind` of token.

    Over several replies, of the metrics only those of acceptance mean something: each reply has a clock of its own.
    The course knows about that.
    """

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.metrics = Metrics()
        self.course = Course()
        self.by_kind = AcceptanceByKind()
        for event in events:
            self.add(event)

    def add(self, event: Event) -> None:
        """Take one more event into account."""
        self.metrics.add(event)
        self.course.add(event)
        self.by_kind.add(event)

    def mark(self) -> TallyMark:
        """Where it is now."""
        return TallyMark(deepcopy(self.metrics), self.course.mark(), deepcopy(self.by_kind))

    def until(self, mark: TallyMark) -> "Tally":
        """The tally as it was at `mark`, to go on otherwise."""
        tally = Tally()
        tally.metrics, tally.by_kind = deepcopy(mark.metrics), deepcopy(mark.by_kind)
        tally.course = self.course.until(mark.course)
        return tally
