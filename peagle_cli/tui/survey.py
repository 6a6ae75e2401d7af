"""What lies ahead in a replay, looked at a little at a time: long recordings are not read twice before the first frame.

Pure: knows no screen and no clock.
"""

from peagle_cli.recording.recording import Run
from peagle_cli.trace.course import Course
from peagle_cli.trace.events import Changed, DraftBatch, Event


class Track:
    """A course, and `behind` each of its batches the number of events that have happened by then."""

    def __init__(self) -> None:
        self.course = Course()
        self.behind: list[int] = []

    def add(self, event: Event, number: int) -> None:
        """Take one more event into account, of which `number` is the place among all."""
        self.course.add(event)
        if isinstance(event, DraftBatch):
            self.behind.append(number)


class Survey:
    """Of the events looked at so far: the `turns` of the conversation, the lanes of races, and the `marks`, the numbers
    of events that have happened when a request has begun or a setting was changed. `seen` counts them, `length` all."""

    def __init__(self, length: int) -> None:
        self.length = length
        self.turns = Track()
        self.marks: list[int] = []
        self.seen = 0
        self._lanes: dict[tuple[Run, str], Track] = {}

    @property
    def complete(self) -> bool:
        """Whether there is nothing more to look at."""
        return self.seen == self.length

    def track(self, run: Run, lane: str) -> Track:
        """The lane of a race, or, of a request with one lane, all turns."""
        return self._lanes.setdefault((run, lane), Track()) if len(run.started) > 1 else self.turns

    def add(self, run: Run, place: int, event: Event) -> None:
        """Take one more event into account, which stands at `place` in `run`."""
        self.seen += 1
        if not place or isinstance(event, Changed):
            self.marks.append(self.seen)
        self.track(run, event.lane).add(event, self.seen)
