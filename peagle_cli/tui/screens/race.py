"""The race: the same prompt in several lanes, side by side, each on its own clock; then who won, and why."""

from collections.abc import Callable
from functools import partial
from typing import ClassVar

from rich.cells import cell_len
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Horizontal, Vertical
from textual.screen import Screen
from textual.widgets import Static

from peagle_cli.engine.contest import Contest
from peagle_cli.engine.protocol import EngineInfo, LaneSetting, Stop
from peagle_cli.errors import BadInputError, PeagleError
from peagle_cli.models.progress import Progress
from peagle_cli.text import one_line, printable
from peagle_cli.trace.comparison import Report
from peagle_cli.trace.events import Failed
from peagle_cli.tui.race import PhotoFinish, Race, Stage
from peagle_cli.tui.screens.figures import FiguresScreen, Place, Subject
from peagle_cli.tui.screens.frames import FRAMES_PER_S
from peagle_cli.tui.session import Idle, NotOpened, Opened, Phase, Refused, Session, Trouble, Update
from peagle_cli.tui.widgets.course import CourseStrip
from peagle_cli.tui.widgets.inspector import Inspector
from peagle_cli.tui.widgets.keyline import KeyLine
from peagle_cli.tui.widgets.lane import STACKED_BELOW, LanePane, LaneText, lay_out_lanes
from peagle_cli.tui.widgets.panel import Panel, Pieces, joined
from peagle_cli.tui.widgets.standings import AdvicePlot, Standings
from peagle_cli.tui.widgets.status import progress_text
from peagle_cli.tui.widgets.transcript import TranscriptView

_FRAMES_PER_FIGURE = 4
_PHOTO_FINISH_S = 6.0  # how long the slowest lane takes when the race is shown again
_STAGES = {
    Stage.WARMING: "◌ warming up",
    Stage.RACING: "● racing: the lane whose clock is behind takes the next step",
    Stage.MEASURING: "◌ measuring what other depths cost, for the advice",
    Stage.DONE: "○ done",
}
_ONE_BY_ONE = "● racing: one lane after the other, each with the machine to itself"


class RaceHeader(Panel):
    """Two lines: model and machine; the prompt and the round."""

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self._race: Race | None = None

    def show_race(self, race: Race) -> None:
        """Show this race."""
        self._race = race
        self.redraw()

    def draw(self) -> list[Pieces]:
        """Draw it."""
        name = [self.ink("peagle race", "title"), self.ink("  ", "label")]
        if (race := self._race) is None:
            return [name]
        parts = (race.info.engine, *race.info.machine.parts)
        model, size = one_line(race.info.model), race.contest.size
        room = self.size.width - cell_len(model) - sum(len(piece.text) for piece in name) - 2
        return [
            self.spread([*name, self.ink(model, "hero")], [self.ink(joined(parts, room), "label")]),
            self.spread(
                [self.ink(one_line(race.prompt), "value")],
                [self.ink(f"  round {race.round} of {size}" if size > 1 and race.round else "", "label")],
            ),
        ]


class RaceScreen(Screen[LaneSetting | None]):
    """Runs a contest on the session's engine, which it opens if it is not. Ends with the lane to adopt, or None.

    `contest_for` says what to run once the engine is known. `hosted` says that the session belongs to a chat, which
    goes on when the race is over; without one, leaving ends the program with the report.
    """

    AUTO_FOCUS = ""  # the keys are the screen's until someone goes to a timeline
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "p", "photo_finish", "photo finish", tooltip="The last round again, in true proportion", id="race.photo"
        ),
        Binding("n", "again", "again", tooltip="Race again", id="race.again"),
        Binding("a", "adopt", "adopt", tooltip="Go on in the chat with the winner's setting", id="race.adopt"),
        Binding("i", "inspect", "inspect", tooltip="Why each token was kept or not", id="race.inspect"),
        Binding("t", "timeline", "Along a lane's timeline", show=False, id="race.timeline"),
        Binding("f", "figures", "figures", tooltip="The lanes' timelines and figures", id="race.figures"),
        Binding("r", "rejected", "rejected", tooltip="Show, hide rejected drafts", id="race.rejected"),
        Binding("escape,q", "leave", "stop, leave", key_display="esc", id="race.leave"),
        Binding("ctrl+c", "leave", show=False, priority=True, id="race.interrupt"),
    ]

    def __init__(self, session: Session, contest_for: Callable[[EngineInfo], Contest], *, hosted: bool) -> None:
        super().__init__()
        self.HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (STACKED_BELOW, "-normal"), (150, "-wide")]
        self.VERTICAL_BREAKPOINTS = [(0, "-low"), (30, "-high"), (50, "-tall")]
        self._session = session
        self._contest_for = contest_for
        self._hosted = hosted
        self._race: Race | None = None
        self._replay: PhotoFinish | None = None
        self._replay_s = 0.0
        self._reported: Report | None = None
        self._error: PeagleError | None = None
        self._going: Callable[[], None] | None = None  # what to do as soon as the engine has stopped
        self._loading: Progress | None = None
        self._frame = 0

    def compose(self) -> ComposeResult:
        """Header, lanes, what they come to, status, keys."""
        yield RaceHeader(id="header")
        yield Container(id="lanes")
        yield Inspector(id="inspector")
        with Vertical(id="result"):
            with Horizontal(id="board"):
                yield Standings(id="standings")
                yield AdvicePlot(id="advice")
            yield Static(id="verdict")
        yield Static(id="stage")
        yield KeyLine()

    def on_mount(self) -> None:
        """Open the engine, or begin at once on one that is open."""
        self._timer = self.set_interval(1 / FRAMES_PER_S, self._tick)
        if self._session.engine is None:
            self._session.open()
        else:
            self._begin(self._session.engine.info)
        self._show_stage()

    def on_resize(self) -> None:
        """As many lanes side by side as have room for words."""
        lay_out_lanes(self.query_one("#lanes", Container), self.size.width)

    # What arrives

    def _tick(self) -> None:
        self._frame += 1
        for update in self._session.poll():
            self._take(update)
        if self._replay is not None:
            self._play_on()
        if self._race is None:
            return
        for pane in self.query(LanePane):
            pane.show_text()
            if self._frame % _FRAMES_PER_FIGURE == 0:
                pane.show_figures()
        if self._frame % _FRAMES_PER_FIGURE == 0:
            self.query_one(Standings).show_race(self._race)
        if not self._session.busy and self._replay is None:
            self._rest()

    def _rest(self) -> None:
        """Nothing moves until a key is pressed: draw the last state, and let the processor be."""
        self._timer.pause()
        for pane in self.query(LanePane):
            pane.show_figures()
        if self._race:
            self.query_one(Standings).show_race(self._race)

    def _take(self, update: Update) -> None:
        match update:
            case Progress():
                self._loading = update
            case Opened(info=info):
                self._loading = None
                self._begin(info)
            case NotOpened(error=error) | Refused(error=error):
                self._fail(error)
            case Failed():
                self._fail(update.error)
            case Trouble(sentence=sentence):
                self.notify(printable(sentence), severity="warning", markup=False)
            case Idle() if self._going is not None:
                self._going()
            case Idle():
                self._ask_next()
            case _ if self._race is not None:
                self._loading = None
                for command in self._race.add(update):
                    self._session.control(command)
        self._show_stage()

    def _begin(self, info: EngineInfo) -> None:
        try:
            self._race = Race(self._contest_for(info), info)
        except BadInputError as error:
            self._fail(error)
            return
        self._reported = None
        lanes = self.query_one("#lanes", Container)
        lanes.remove_children()
        lanes.mount_all(LanePane(self._race, runner) for runner in self._race.runners)
        self.call_after_refresh(self.on_resize)
        self.query_one("#result").set_class(False, "-done")
        self._ask_next()

    def _ask_next(self) -> None:
        if self._race is None or self._session.phase is not Phase.READY:
            return
        if request := self._race.next_request():
            self._session.run(request, record=self._race.stage is Stage.RACING)
            self._timer.resume()
        self.query_one(RaceHeader).show_race(self._race)
        self._show_report()

    def _fail(self, error: PeagleError) -> None:
        if isinstance(error, BadInputError) and not self._hosted:
            self.app.exit(error)
        if self._race is not None:
            self._race.cancel()
        self._error = error
        self.refresh_bindings()

    def _play_on(self) -> None:
        assert self._replay is not None
        self._replay_s += self._replay.seconds / _PHOTO_FINISH_S / FRAMES_PER_S
        if not self._replay.show(self._replay_s):
            self._replay = None
        self._show_stage()

    # What the user asks for

    def action_photo_finish(self) -> None:
        """Show the last round again, every lane at its own speed."""
        if self._race and self._race.stage in (Stage.DONE, Stage.MEASURING) and (last := self._race.last_round):
            self._replay, self._replay_s = PhotoFinish(self._race, last), 0.0
            self._timer.resume()

    def action_again(self) -> None:
        """Race again."""
        if self._session.phase is Phase.READY and self._session.engine and self._race:
            self._replay = self._error = None
            self._begin(self._session.engine.info)

    def action_adopt(self) -> None:
        """Take the fastest lane's setting back to the chat."""
        if self._race and self._race.stage in (Stage.DONE, Stage.MEASURING):
            method, depth = self._race.standings()[0].runner.setting
            self._go(LaneSetting("", method, depth))

    @on(TranscriptView.Pressed)
    def _pressed(self, message: TranscriptView.Pressed) -> None:
        self.query_one(Inspector).inspect(message.view, message.spot)

    def action_inspect(self) -> None:
        """Look at a token of a lane: what drafter and target thought of it, and why it was kept or not."""
        lanes = [view for view in self.query(LaneText) if view.transcript.batches]
        if lanes:
            self.query_one(Inspector).inspect(lanes[-1])

    def action_timeline(self) -> None:
        """Go to the first lane's timeline; Tab goes on to the next."""
        if strip := next(iter(self.query("LanePane CourseStrip").results(CourseStrip)), None):
            strip.focus()

    def action_figures(self) -> None:
        """The lanes' timelines and figures."""
        if self._race:
            self.app.push_screen(FiguresScreen(self._subjects, lambda: self._session.busy), self._go_to)

    def _subjects(self) -> list[Subject]:
        runners = self._race.runners if self._race else []
        return [Subject(runner.name, runner.reply.tally) for runner in runners]

    def _go_to(self, place: Place | None) -> None:
        """Show a batch that was chosen on the page of figures."""
        for pane in self.query(LanePane):
            if place is not None and pane.runner.name == place.subject:
                pane.look_at(place.batch)

    def action_rejected(self) -> None:
        """Show the rejected drafts in place, or the replies alone."""
        for view in self.query(LaneText):
            view.rejected = "none" if view.rejected == "first" else "first"

    def action_leave(self) -> None:
        """Leave the timelines; or stop what runs; when nothing does, leave."""
        if isinstance(self.focused, CourseStrip):
            self.set_focus(None)
        elif self._session.phase is Phase.REPLYING and self._race and self._race.stage is not Stage.MEASURING:
            self._stop()
        elif self._hosted:
            self._go(None)
        else:
            self._session.close()
            self.app.exit(self._race.report if self._race else None)

    def _go(self, setting: LaneSetting | None) -> None:
        """Back to the chat, once what runs has been stopped: its events are not the chat's."""
        if self._session.phase is Phase.REPLYING:
            self._going = partial(self._leave_with, setting)
            self._stop()
        else:
            self._leave_with(setting)

    def _leave_with(self, setting: LaneSetting | None) -> None:
        self.dismiss(setting)

    def _stop(self) -> None:
        if self._race:
            self._race.cancel()
        self._session.control(Stop())

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Dim the keys that would do nothing now; offer to adopt only where there is a chat."""
        over = self._race is not None and self._race.stage in (Stage.DONE, Stage.MEASURING)
        if action == "adopt":
            return (True if over and self._race and self._race.last_round else None) if self._hosted else False
        if action in ("photo_finish", "again"):
            return True if over else None
        return True

    # What is shown

    def _show_report(self) -> None:
        if self._race is None or self._race.report is self._reported:
            return
        self._reported = report = self._race.report
        assert report is not None
        self.query_one("#result").set_class(True, "-done")
        self.query_one("#verdict", Static).update(_findings(report))
        if report.advice:
            self.query_one(AdvicePlot).show(report.advice)
        self.refresh_bindings()

    def _show_stage(self) -> None:
        text = Text(printable(self._stage_text()))
        if self._error is None:  # an error is to be read to its end
            text.no_wrap, text.overflow = True, "ellipsis"
        self.query_one("#stage", Static).update(text)

    def _stage_text(self) -> str:
        if self._error:
            return f"✗ {self._error}"
        if self._replay:
            return f"▶ photo finish, at {self._replay.seconds / _PHOTO_FINISH_S:.2f}× real time: {self._replay_s:.2f} s"
        if self._race is None or self._loading:
            return f"◌ {progress_text(self._loading) if self._loading else 'starting the engine …'}"
        if self._race.stage is Stage.RACING and not self._race.info.takes_turns:
            return _ONE_BY_ONE
        return _STAGES[self._race.stage]


def _findings(report: Report) -> Text:
    """Verdict, notes and advice, safe to show."""
    text = Text(printable(report.verdict), style="bold")
    for note in report.notes:
        text.append(f"\n{printable(note)}", style="not bold")
    if report.advice:
        text.append(f"\n{printable(report.advice.sentence)}", style="not bold")
    return text
