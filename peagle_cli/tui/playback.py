"""A recording at a moment: what its screen shows after so many of its events. Pure: knows no screen and no clock.

Going forward adds events; going back begins again and adds fewer of them.
"""

from bisect import bisect_right
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from peagle_cli.engine.protocol import LaneSetting
from peagle_cli.recording.format import Header
from peagle_cli.recording.recording import Recording, Run
from peagle_cli.trace.events import Changed, DraftBatch, Event, Failed, Finished
from peagle_cli.trace.tally import Tally
from peagle_cli.tui.conversation import Reply
from peagle_cli.tui.model import Kind, Transcript
from peagle_cli.tui.race import Runner
from peagle_cli.tui.survey import Survey, Track

BETWEEN_REQUESTS_S = 1.5
"""How long the end of a request stays before the next begins; the user's own pauses are not replayed."""


class Moment(NamedTuple):
    """Where an event stands: its request, its place there, and its seconds on the replay's clock."""

    run: Run
    place: int
    at_s: float

    @property
    def event(self) -> Event:
        """The event."""
        return self.run[self.place]


class Playback:
    """`position` is the number of events that have happened, of `length`.

    A request with one lane is a turn of the conversation in `transcript`, with its `reply`; `tally` is what the turns
    came to so far. One with several is a race between `runners`, which are empty otherwise. `run` is the request in
    view, None before the first. `survey` looks ahead.
    """

    def __init__(self, recording: Recording, max_idle: float) -> None:
        self.recording = recording
        self.position = 0
        self._moments = _moments(recording, max_idle)
        self._times = [moment.at_s for moment in self._moments]
        self.survey = Survey([(moment.run, moment.place) for moment in self._moments])
        self._restart()

    @property
    def header(self) -> Header:
        """What was recorded, and on what."""
        return self.recording.header

    @property
    def length(self) -> int:
        """How many events there are."""
        return len(self._moments)

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

    def seek(self, position: int) -> None:
        """Show the first `position` events; more than there are means all, less than none means none."""
        position = min(max(position, 0), self.length)
        if position < self.position:
            self._restart()
        for moment in self._moments[self.position : position]:
            self._add(moment)
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
        return next((i for i in earlier if _is_step(self._moments[i].event)), 0)

    def track(self, runner: Runner) -> Track:
        """All that is known of a lane of the race in view."""
        assert self.run is not None
        return self.survey.track(self.run, next(lane for lane, each in self._lanes.items() if each is runner))

    def _behind(self, wanted: Callable[[Event], bool]) -> int:
        later = range(self.position, self.length)
        found = next((i for i in later if wanted(self._moments[i].event)), self.length - 1)
        behind = found + 1
        while behind < self.length and isinstance(self._moments[behind].event, Finished | Failed):
            behind += 1
        return behind

    def _restart(self) -> None:
        self.position = 0
        self.run: Run | None = None
        self.reply: Reply | None = None
        self.runners: list[Runner] = []
        self.tally = Tally()
        self.transcript = Transcript()
        self.transcript.add_legend()
        self._lanes: dict[str, Runner] = {}
        self._last_turn: Run | None = None

    def _add(self, moment: Moment) -> None:
        if moment.run is not self.run:
            self.run = moment.run
            self._begin(moment.run)
        event, recall = moment.event, partial(moment.run.__getitem__, moment.place)
        if self.runners:
            self._lanes[event.lane].add(event, recall)
        elif self.reply is not None:
            self._add_to_turn(event, recall, self.reply)

    def _begin(self, run: Run) -> None:
        self._lanes = {lane: Runner((start.method, start.depth)) for lane, start in run.started.items()}
        if len(self._lanes) > 1:
            self.runners = list(self._lanes.values())
            return
        self.runners = []
        (start,) = run.started.values()
        self.reply = Reply(LaneSetting(start.lane, start.method, start.depth))
        again = self._last_turn is not None and self._last_turn.asked.messages == run.asked.messages
        if not again:
            self.transcript.add_turn("you")
            self.transcript.add_prompt(start.prompt)
        self.transcript.add_turn(self.header.model + (", again" if again else ""))
        self.transcript.begin_reply(start.sampling)
        self._last_turn = run

    def _add_to_turn(self, event: Event, recall: Callable[[], Event], reply: Reply) -> None:
        reply.add(event)
        self.tally.add(event)
        match event:
            case DraftBatch():
                self.transcript.add_batch(event, recall)
            case Changed():
                self.transcript.add_change(event)
            case Finished():
                self.transcript.add_note(reply.closing())
            case Failed():
                self.transcript.add_note(event.message, Kind.ERROR)


def _moments(recording: Recording, max_idle: float) -> list[Moment]:
    """All events in order; pauses within a request are cut to `max_idle` seconds."""
    moments: list[Moment] = []
    at_s = 0.0
    for run in recording.runs:
        before = run.times[0] if run.times else 0.0
        for place, time in enumerate(run.times):
            at_s, before = at_s + min(time - before, max_idle), time
            moments.append(Moment(run, place, at_s))
        at_s += BETWEEN_REQUESTS_S
    return moments


def _is_step(event: Event) -> bool:
    return isinstance(event, DraftBatch)


def _rejects(event: Event) -> bool:
    return isinstance(event, DraftBatch) and bool(event.rejected)
