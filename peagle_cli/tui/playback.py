"""A recording at a moment: what its screen shows after so many of its events. Pure: knows no screen and no clock.

One scene runs ahead and leaves marks; the one that is shown goes to the last mark before the moment that is sought, and
adds the few events behind it.
"""

from array import array
from bisect import bisect_right
from collections.abc import Callable
from itertools import accumulate

from peagle_cli.recording.format import Header
from peagle_cli.recording.recording import Recording, Run
from peagle_cli.trace.events import DraftBatch, Event, Failed, Finished
from peagle_cli.trace.tally import Tally
from peagle_cli.tui.conversation import Reply
from peagle_cli.tui.model import Transcript
from peagle_cli.tui.race import Runner
from peagle_cli.tui.scene import Scene
from peagle_cli.tui.survey import Survey, Track

BETWEEN_REQUESTS_S = 1.5
"""How long the end of a request stays before the next begins; the user's own pauses are not replayed."""

_EVENTS_PER_MARK = 500


class Playback:
    """`position` is the number of events that have happened, of `length`.

    A request with one lane is a turn of the conversation in `transcript`, with its `reply`; `tally` is what the turns
    came to so far. One with several is a race between `runners`, which are empty otherwise. `run` is the request in
    view, None before the first. `survey` knows of what lies ahead.
    """

    def __init__(self, recording: Recording, max_idle: float) -> None:
        self.recording = recording
        self.position = 0
        self._begins = list(accumulate(map(len, recording.runs), initial=0))  # of each request among all events
        self._times = _times(recording, max_idle)
        self.survey = Survey(self.length)
        self._scene = Scene(recording.header.model)
        self._ahead = Scene(recording.header.model)
        self._marks = [self._ahead.mark()]  # one every so many events

    @property
    def header(self) -> Header:
        """What was recorded, and on what."""
        return self.recording.header

    @property
    def run(self) -> Run | None:
        """The request in view."""
        return self._scene.run

    @property
    def transcript(self) -> Transcript:
        """The conversation."""
        return self._scene.transcript

    @property
    def reply(self) -> Reply | None:
        """The reply in view."""
        return self._scene.reply

    @property
    def runners(self) -> list[Runner]:
        """The lanes of the race in view."""
        return self._scene.runners

    @property
    def tally(self) -> Tally:
        """What the turns came to."""
        return self._scene.tally

    @property
    def length(self) -> int:
        """How many events there are."""
        return len(self._times)

    @property
    def seconds(self) -> float:
        """How long the replay takes at its own speed."""
        return self._times[-1] if self._times else 0.0

    def seconds_at(self, position: int) -> float:
        """When the last of so many events happened."""
        return self._times[position - 1] if position else 0.0

    @property
    def max_tokens(self) -> int:
        """How many tokens a reply of the request in view may have."""
        return max((started.max_tokens for started in self.run.started.values()), default=1) if self.run else 1

    def position_at(self, seconds: float) -> int:
        """How many events have happened by then."""
        return bisect_right(self._times, seconds)

    def look_ahead(self, events: int) -> None:
        """Look at so many more of the events that are not known yet."""
        begin = self.survey.seen
        for position in range(begin, min(begin + events, self.length)):
            run, place = self._find(position)
            event = run[place]
            self._ahead.add(run, place, event)
            self.survey.add(run, place, event)
            if self.survey.seen % _EVENTS_PER_MARK == 0:
                self._marks.append(self._ahead.mark())

    def seek(self, position: int) -> None:
        """Show the first `position` events; more than there are means all, less than none means none.

        Takes long only as far as the events are not known yet.
        """
        position = min(max(position, 0), self.length)
        self.look_ahead(position - self.survey.seen)
        number = position // _EVENTS_PER_MARK
        if not number * _EVENTS_PER_MARK <= self.position <= position:
            self._scene.become(self._ahead, self._marks[number])
            self.position = number * _EVENTS_PER_MARK
        for number in range(self.position, position):
            run, place = self._find(number)
            self._scene.add(run, place, run[place])
        self.position = position

    def next_step(self) -> int:
        """The position behind the next step and what ends with it."""
        return self._behind(_is_step)

    def next_rejection(self) -> int:
        """The position behind the next step that rejected a draft."""
        return self._behind(_rejects)

    def previous_step(self) -> int:
        """The position before the latest step."""
        earlier = range(self.position - 1, -1, -1)
        return next((i for i in earlier if _is_step(self._event(i))), 0)

    def track(self, runner: Runner) -> Track:
        """All that is known of a lane of the race in view."""
        assert self.run is not None
        return self.survey.track(self.run, next(lane for lane, each in self._scene.lanes.items() if each is runner))

    def _find(self, position: int) -> tuple[Run, int]:
        """The request of the event at `position`, and the event's place there."""
        number = bisect_right(self._begins, position) - 1
        return self.recording.runs[number], position - self._begins[number]

    def _event(self, position: int) -> Event:
        run, place = self._find(position)
        return run[place]

    def _behind(self, wanted: Callable[[Event], bool]) -> int:
        later = range(self.position, self.length)
        found = next((i for i in later if wanted(self._event(i))), self.length - 1)
        behind = found + 1
        while behind < self.length and isinstance(self._event(behind), Finished | Failed):
            behind += 1
        return behind


def _times(recording: Recording, max_idle: float) -> "array[float]":
    """The seconds of all events on the replay's clock; pauses within a request are cut to `max_idle` seconds."""
    times = array("d")
    at_s = 0.0
    for run in recording.runs:
        before = run.times[0] if run.times else 0.0
        for time in run.times:
            at_s, before = at_s + min(time - before, max_idle), time
            times.append(at_s)
        at_s += BETWEEN_REQUESTS_S
    return times


def _is_step(event: Event) -> bool:
    return isinstance(event, DraftBatch)


def _rejects(event: Event) -> bool:
    return isinstance(event, DraftBatch) and bool(event.rejected)
