"""What a replay shows, as a fold over the recording's events that can go back to where it was. Pure.

Going back costs as much as what is copied, not as the events that happened: what only grows is cut, the rest is small.
"""

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from peagle_cli.engine.protocol import LaneSetting
from peagle_cli.recording.recording import Run
from peagle_cli.trace.events import Changed, DraftBatch, Event, Failed, Finished
from peagle_cli.trace.tally import Tally, TallyMark
from peagle_cli.tui.conversation import RECENT_BATCHES, Reply, ReplyMark
from peagle_cli.tui.model import Kind, Transcript, TranscriptMark
from peagle_cli.tui.race import Runner


class _LaneMark(NamedTuple):
    """A lane of a race, and where it was."""

    runner: Runner
    reply: ReplyMark
    transcript: TranscriptMark


class SceneMark(NamedTuple):
    """Where a scene was: behind the first `place` events of `run`."""

    run: Run | None
    place: int
    last_turn: Run | None
    tally: TallyMark
    transcript: TranscriptMark
    reply: tuple[Reply, ReplyMark] | None
    lanes: dict[str, _LaneMark]


class Scene:
    """What stands on the screen.

    A request with one lane is a turn of the conversation in `transcript`, with its `reply`; `tally` is what the turns
    came to so far. One with several is a race between `runners`, which are empty otherwise. `run` is the request in
    view, None before the first. `model` is the name of who replies.
    """

    def __init__(self, model: str) -> None:
        self.model = model
        self.run: Run | None = None
        self.reply: Reply | None = None
        self.runners: list[Runner] = []
        self.lanes: dict[str, Runner] = {}
        self.tally = Tally()
        self.transcript = Transcript()
        self.transcript.add_legend()
        self._last_turn: Run | None = None
        self._place = 0

    def add(self, run: Run, place: int, event: Event) -> None:
        """Take in the next event, which stands at `place` in `run`."""
        if run is not self.run:
            self.run = run
            self._begin(run)
        self._place = place + 1
        if self.runners:
            self.lanes[event.lane].add(event, run.__getitem__, place)
        elif self.reply is not None:
            self._add_to_turn(event, run, place, self.reply)

    def mark(self) -> SceneMark:
        """Where it is now."""
        lanes = {
            lane: _LaneMark(runner, runner.reply.mark(), runner.transcript.mark())
            for lane, runner in self.lanes.items()
            if self.runners
        }
        reply = (self.reply, self.reply.mark()) if self.reply is not None else None
        return SceneMark(
            self.run, self._place, self._last_turn, self.tally.mark(), self.transcript.mark(), reply, lanes
        )

    def become(self, other: "Scene", mark: SceneMark) -> None:
        """Be what `other`, a fold over the same events, was at `mark`."""
        self.run, self._place, self._last_turn = mark.run, mark.place, mark.last_turn
        self.tally = other.tally.until(mark.tally)
        self.transcript.become(other.transcript, mark.transcript)
        self.reply = None
        if mark.reply is not None:
            reply, reply_mark = mark.reply
            # Beside a race the last turn's reply stays as it is.
            self.reply = reply if mark.lanes else reply.until(reply_mark, self._latest(reply_mark.setting.name))
        self.lanes = {lane: self._runner(lane, lane_mark) for lane, lane_mark in mark.lanes.items()}
        if self.runners or self.lanes:  # a list that stays the same tells that there is no other race
            self.runners = list(self.lanes.values())

    def _runner(self, lane: str, mark: _LaneMark) -> Runner:
        runner = Runner(mark.runner.setting)
        runner.reply = mark.runner.reply.until(mark.reply, self._latest(lane))
        runner.transcript.become(mark.runner.transcript, mark.transcript)
        return runner

    def _latest(self, lane: str) -> list[DraftBatch]:
        """The latest batches of a lane of the run, as many as a reply keeps."""
        return list(islice(self._backwards(lane), RECENT_BATCHES))[::-1]

    def _backwards(self, lane: str) -> Iterator[DraftBatch]:
        for place in range(self._place - 1, -1, -1):
            event = self.run[place] if self.run is not None else None
            if isinstance(event, DraftBatch) and event.lane == lane:
                yield event

    def _begin(self, run: Run) -> None:
        self.lanes = {lane: Runner((start.method, start.depth)) for lane, start in run.started.items()}
        if len(self.lanes) > 1:
            self.runners = list(self.lanes.values())
            return
        self.runners = []
        (start,) = run.started.values()
        self.reply = Reply(LaneSetting(start.lane, start.method, start.depth))
        again = self._last_turn is not None and self._last_turn.asked.messages == run.asked.messages
        if not again:
            self.transcript.add_turn("you")
            self.transcript.add_prompt(start.prompt)
        self.transcript.add_turn(self.model + (", again" if again else ""))
        self.transcript.begin_reply(start.sampling)
        self._last_turn = run

    def _add_to_turn(self, event: Event, run: Run, place: int, reply: Reply) -> None:
        reply.add(event)
        self.tally.add(event)
        match event:
            case DraftBatch():
                self.transcript.add_batch(event, run.__getitem__, place)
            case Changed():
                self.transcript.add_change(event)
            case Finished():
                self.transcript.add_note(reply.closing())
            case Failed():
                self.transcript.add_note(event.message, Kind.ERROR)
