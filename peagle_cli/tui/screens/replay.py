"""The replay: a recording on the chat's and the race's own widgets, with a clock that obeys."""

from time import monotonic
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Horizontal
from textual.screen import Screen

from peagle_cli.tui.playback import Playback
from peagle_cli.tui.screens.figures import FiguresScreen, Place, Subject, subjects_of
from peagle_cli.tui.screens.frames import (
    FRAMES_PER_BATCHES,
    FRAMES_PER_FIGURES,
    FRAMES_PER_PLOT,
    FRAMES_PER_S,
    HEIGHTS,
    WIDTHS,
)
from peagle_cli.tui.screens.help import PARTS, HelpScreen
from peagle_cli.tui.widgets.course import CourseStrip
from peagle_cli.tui.widgets.figures import Figures
from peagle_cli.tui.widgets.inspector import Inspector
from peagle_cli.tui.widgets.keyline import KeyLine
from peagle_cli.tui.widgets.lane import LanePane, LaneText, lay_out_lanes
from peagle_cli.tui.widgets.replay_header import ReplayHeader
from peagle_cli.tui.widgets.side import Side
from peagle_cli.tui.widgets.timeline import Timeline
from peagle_cli.tui.widgets.transcript import TranscriptView

_SPEEDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
_JUMP_S = 5.0
_EVENTS_PER_FRAME = 1000  # what seeking may add without the screen seeming to hang
_EVENTS_AHEAD_PLAYING, _EVENTS_AHEAD_PAUSED = 100, 400  # per frame
_STEP = Binding.Group("step", compact=True)
_SPEED = Binding.Group("speed", compact=True)
_JUMP = Binding.Group("5 s", compact=True)


class ReplayScreen(Screen[None]):
    """Shows `playback` from its beginning, and pauses at its end; `playing` in between.

    `hosted` says that there is a screen to go back to.
    """

    AUTO_FOCUS = ""  # the keys are the screen's until someone goes to a timeline
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "play", "play, pause", tooltip="Play, pause", id="replay.play"),
        Binding("i", "inspect", "inspect", tooltip="Why each token was kept or not", id="replay.inspect"),
        Binding("left,comma", "step_back", "back", tooltip="A step back", id="replay.back", group=_STEP),
        Binding("right,full_stop", "step", "step", tooltip="A step on", id="replay.step", group=_STEP),
        Binding("n", "rejection", "next rejection", tooltip="On to the next rejected draft", id="replay.rejection"),
        Binding(
            "left_square_bracket,less_than_sign",
            "faster(-1)",
            "slower",
            tooltip="Slower",
            key_display="[",
            id="replay.slower",
            group=_SPEED,
        ),
        Binding(
            "right_square_bracket,greater_than_sign",
            "faster(1)",
            "faster",
            tooltip="Faster",
            key_display="]",
            id="replay.faster",
            group=_SPEED,
        ),
        Binding("shift+left", "jump(-1)", "5 s back", show=False, id="replay.earlier", group=_JUMP),
        Binding("shift+right", "jump(1)", "5 s on", show=False, id="replay.later", group=_JUMP),
        Binding("home", "go_to(0)", "To the beginning", show=False, id="replay.begin"),
        Binding("end", "go_to(1)", "To the end", show=False, id="replay.end"),
        Binding("t", "timeline", "timeline", tooltip="Along the timeline", show=False, id="replay.timeline"),
        Binding("f", "figures", "figures", tooltip="Timeline and figures", id="replay.figures"),
        Binding("r", "rejected", "rejected", tooltip="Show, hide rejected drafts", id="replay.rejected"),
        Binding("up", "scroll(-1)", "A line up", show=False, id="replay.up"),
        Binding("down", "scroll(1)", "A line down", show=False, id="replay.down"),
        Binding("f1", "help", "help", tooltip="This page", id="replay.help"),
        Binding("escape,q,ctrl+d", "leave", "leave", key_display="q", tooltip="Leave", id="replay.leave"),
        Binding("ctrl+c", "leave", show=False, priority=True, id="replay.interrupt"),
    ]

    def __init__(self, playback: Playback, speed: float, hosted: bool = False) -> None:
        super().__init__()
        self.HORIZONTAL_BREAKPOINTS = WIDTHS
        self.VERTICAL_BREAKPOINTS = HEIGHTS
        self.playback = playback
        self._hosted = hosted
        self._speed = speed
        self.playing = True
        self._seconds = 0.0  # on the replay's clock
        self._last = monotonic()
        self._frame = 0
        self._target: tuple[int, float] | None = None  # the position that is sought, and its seconds
        self._shown = -1  # the position that is drawn
        self._transcript = playback.transcript
        self._runners = playback.runners

    def compose(self) -> ComposeResult:
        """As the chat, or as the race, depending on what is replayed; below them the timeline and the clock."""
        yield ReplayHeader(self.playback, id="header")
        yield Figures(id="strip")
        with Container(id="views"):
            with Horizontal(id="talk"):
                yield LaneText(id="transcript")
                yield Side(id="side")
            yield Container(id="lanes")
            yield Inspector(id="inspector")
        yield CourseStrip(id="course")
        yield Timeline(self.playback, id="timeline")
        yield KeyLine()

    def on_mount(self) -> None:
        """Begin to play."""
        self._text.show(self._transcript)
        self.query_one(Side).set_positions(max(self.playback.header.max_depths.values(), default=0))
        self._timer = self.set_interval(1 / FRAMES_PER_S, self._tick)
        self._last = monotonic()
        self.show()

    def on_resize(self) -> None:
        """As many lanes side by side as have room."""
        lay_out_lanes(self.query_one("#lanes", Container), self.size.width)

    def _tick(self) -> None:
        self._frame += 1
        self._look_ahead()
        if self._target is not None:
            self._approach(self._target)
            return
        if not self.playing:
            self._play(False)
            return
        now = monotonic()
        self._seconds += (now - self._last) * self._speed
        self._last = now
        position = self.playback.position_at(self._seconds)
        if position > self.playback.position:
            self.playback.seek(position)
        if self._seconds >= self.playback.seconds:
            self._play(False)
        self.show()

    def _look_ahead(self) -> None:
        """Learn a little more of what is to come, for the timeline."""
        if not self.playback.survey.complete:
            self.playback.look_ahead(_EVENTS_AHEAD_PLAYING if self.playing else _EVENTS_AHEAD_PAUSED)
            self.query_one(Timeline).redraw()
            self._show_course()

    # What the user asks for

    def action_play(self) -> None:
        """Play on, or pause; at the end begin again."""
        if not self.playing and self.playback.position == self.playback.length:
            self.seek(0)
        self._play(not self.playing)
        self.show()

    def action_step(self) -> None:
        """Pause, and take a step."""
        self.seek(self.playback.next_step())

    def action_step_back(self) -> None:
        """Pause, and take the latest step back."""
        self.seek(self.playback.previous_step())

    def action_rejection(self) -> None:
        """Pause, and go on to the next step that rejected a draft."""
        self.seek(self.playback.next_rejection())

    def action_faster(self, by: int) -> None:
        """Play faster or slower; also while paused."""
        nearest = min(range(len(_SPEEDS)), key=lambda i: abs(_SPEEDS[i] - self._speed))
        self._speed = _SPEEDS[min(max(nearest + by, 0), len(_SPEEDS) - 1)]
        self.show()

    def action_jump(self, by: int) -> None:
        """Go some seconds on or back."""
        self._go_to(self._seconds + by * _JUMP_S)

    def action_go_to(self, share: float) -> None:
        """Go to this share of the whole time."""
        self._go_to(share * self.playback.seconds)

    @on(Timeline.Sought)
    def _sought(self, message: Timeline.Sought) -> None:
        self._go_to(message.seconds)

    @on(CourseStrip.Moved)
    def _looked_at(self, message: CourseStrip.Moved) -> None:
        if message.strip.id == "course":
            self.seek(self.playback.survey.turns.behind[message.batch])
        elif runner := next(pane.runner for pane in self.query(LanePane) if message.strip in pane.query("*")):
            self.seek(self.playback.track(runner).behind[message.batch])

    @on(TranscriptView.Pressed)
    def _pressed(self, message: TranscriptView.Pressed) -> None:
        self._play(False)
        self.query_one(Inspector).inspect(message.view, message.spot)

    def action_inspect(self) -> None:
        """Pause, and look at a token: what drafter and target thought of it, and why it was kept or not."""
        self._play(False)
        lane = self.query(LanePane).last().query_one(LaneText) if self.playback.runners else self._text
        self.query_one(Inspector).inspect(lane)

    def action_timeline(self) -> None:
        """Go to the timeline, of the first lane in a race; Tab goes on to the next."""
        self.query("LanePane CourseStrip" if self.playback.runners else "#course").first(CourseStrip).focus()

    def action_figures(self) -> None:
        """The timeline and the figures, of this reply and of the conversation, or of the race's lanes."""
        self.app.push_screen(FiguresScreen(self._subjects, lambda: self.playing), self._go_to_place)

    def action_rejected(self) -> None:
        """Show the rejected drafts in place, or the replies alone."""
        for view in self.query(LaneText):
            view.rejected = "none" if view.rejected == "first" else "first"

    def action_scroll(self, by: int) -> None:
        """Scroll the transcript."""
        self._text.scroll_relative(y=by, animate=False)

    def action_help(self) -> None:
        """The keys."""
        self.app.push_screen(HelpScreen({"": self.BINDINGS, **PARTS}, prompt=False))

    def action_leave(self) -> None:
        """Leave the timelines; or end the replay."""
        if isinstance(self.focused, CourseStrip):
            self.set_focus(None)
        elif self._hosted:
            self.dismiss()
        else:
            self.app.exit(0)

    def seek(self, position: int) -> None:
        """Pause, and show the first `position` events; where that takes long, it goes on in the frames that follow."""
        position = min(max(position, 0), self.playback.length)
        self._play(False)
        self._approach((position, self.playback.seconds_at(position)))

    def _subjects(self) -> list[Subject]:
        playback = self.playback
        if playback.runners:
            return [Subject(runner.name, runner.reply.tally) for runner in playback.runners]
        return subjects_of(playback.tally, playback.reply)

    def _go_to_place(self, place: Place | None) -> None:
        """Go to a batch that was chosen on the page of figures."""
        if place is None:
            return
        runner = next((runner for runner in self.playback.runners if runner.name == place.subject), None)
        track = self.playback.track(runner) if runner else self.playback.survey.turns
        self.seek(track.behind[place.batch])

    def _go_to(self, seconds: float) -> None:
        """Go to a time, and play on if it was playing."""
        seconds = min(max(seconds, 0.0), self.playback.seconds)
        self._approach((self.playback.position_at(seconds), seconds))

    def _approach(self, target: tuple[int, float]) -> None:
        """Come to a position and its time; of what is not known yet, only by as much as can be looked at in a frame."""
        position, seconds = target
        self.playback.seek(min(position, self.playback.survey.seen + _EVENTS_PER_FRAME))
        there = self.playback.position == position
        self._target = None if there else target
        self._seconds = seconds if there else self.playback.seconds_at(self.playback.position)
        self._play(self.playing)
        self.show()

    def _play(self, on: bool) -> None:
        self.playing = on
        self._last = monotonic()
        moving = on or self._target is not None or not self.playback.survey.complete
        (self._timer.resume if moving else self._timer.pause)()

    # What is shown

    @property
    def seeking(self) -> bool:
        """Whether the moment that was sought has yet to be reached."""
        return self._target is not None

    @property
    def _text(self) -> LaneText:
        return self.query_one("#transcript", LaneText)

    def show(self) -> None:
        """Draw what changed; while playing, figures and plots less often than text."""
        self.query_one(Timeline).show_now(self._seconds, self._speed, self.playing)
        if self.playback.position != self._shown:
            self._shown = self.playback.position
            self._show_text()
        self._show_figures()

    def _show_text(self) -> None:
        playback = self.playback
        if playback.transcript is not self._transcript:
            self._transcript = playback.transcript
            self._text.show(self._transcript)
        self._text.update()
        if playback.runners is not self._runners:
            self._show_lanes()
        for pane in self.query(LanePane):
            pane.show_text()
        self.query_one(ReplayHeader).redraw()

    def _show_figures(self) -> None:
        reply, side = self.playback.reply, self.query_one(Side)
        if self._due(FRAMES_PER_BATCHES):
            side.show_batches(reply)
        if self._due(FRAMES_PER_FIGURES):
            side.show_figures(reply)
            self.query_one("#strip", Figures).show(reply)
            self._show_course()
        if self._due(FRAMES_PER_PLOT):
            side.show_course(reply)

    def _show_course(self) -> None:
        self.query_one("#course", CourseStrip).show_course(
            self.playback.survey.turns.course, len(self.playback.tally.course)
        )
        for pane in self.query(LanePane):
            if pane.runner in self.playback.runners:
                pane.show_figures(self.playback.track(pane.runner).course)

    def _due(self, frames: int) -> bool:
        return not self.playing or self._frame % frames == 0

    def _show_lanes(self) -> None:
        self._runners = self.playback.runners
        panes = list(self.query(LanePane))
        if panes and [pane.runner.setting for pane in panes] == [runner.setting for runner in self._runners]:
            for pane, runner in zip(panes, self._runners, strict=True):
                pane.show_runner(runner)
            return
        self.set_class(bool(self._runners), "-race")
        lanes = self.query_one("#lanes", Container)
        lanes.remove_children()
        lanes.mount_all(LanePane(self.playback, runner) for runner in self._runners)
        self.call_after_refresh(self.on_resize)
