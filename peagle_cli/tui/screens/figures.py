"""The figures page: a reply's timeline, speed and effective depth along it, and what drafts came to."""

from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple, TypeVar

from rich.segment import Segment
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Grid, VerticalScroll
from textual.screen import Screen

from peagle_cli.trace.metrics import Metrics
from peagle_cli.trace.tally import FEW, Tally
from peagle_cli.tui.conversation import Reply
from peagle_cli.tui.widgets.course import CourseStrip
from peagle_cli.tui.widgets.course_plot import WINDOW, CoursePlot
from peagle_cli.tui.widgets.keyline import KeyLine
from peagle_cli.tui.widgets.panel import Panel, Pieces
from peagle_cli.tui.widgets.tallies import Histogram, Kinds, Positions, TallyPanel
from peagle_cli.wording import number

_REDRAWS_PER_S = 4
_Plate = TypeVar("_Plate", CoursePlot, Histogram, Positions, Kinds)
_SUBJECT = Binding.Group("turn", compact=True)


class Subject(NamedTuple):
    """What the page can tell about: a reply, a conversation, a lane of a race.

    `average` is what its acceptance is held against; None for nothing. `first` is the number of its first batch in the
    text beside which it is shown.
    """

    name: str
    tally: Tally
    average: Metrics | None = None
    first: int = 0


class Place(NamedTuple):
    """A batch of a subject, as it is counted in the text."""

    subject: str
    batch: int


def subjects_of(talk: Tally, reply: Reply | None) -> list[Subject]:
    """What there is to tell about a conversation, of which `talk` is the tally and `reply` the latest reply."""
    conversation = Subject("the conversation", talk)
    if reply is None:
        return [conversation]
    first = len(talk.course) - len(reply.tally.course)
    return [Subject("this reply", reply.tally, talk.metrics, first), conversation]


class FiguresHeader(Panel):
    """Two lines: whose figures these are, and the chief ones."""

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self._subjects: Sequence[Subject] = ()
        self._shown = 0

    def show_subjects(self, subjects: Sequence[Subject], shown: int) -> None:
        """Tell which of these are shown."""
        self._subjects, self._shown = subjects, shown
        self.redraw()

    def draw(self) -> list[Pieces]:
        """Draw it."""
        if not self._subjects:
            return []
        names: Pieces = []
        for i, subject in enumerate(self._subjects):
            here = i == self._shown
            names.append(self.ink(f"[{subject.name}] " if here else f" {subject.name}  ", "hero" if here else "label"))
        return [[self.ink("figures of ", "title"), *names], self._chief(self._subjects[self._shown].tally)]

    def _chief(self, tally: Tally) -> Pieces:
        metrics, course = tally.metrics, tally.course
        whole = course.stretch(0, len(course))
        figures = (
            (number(whole.tokens_per_second, ".1f"), " tokens/s"),
            (number(metrics.mean_acceptance_length, ".2f"), " effective depth"),
            (number(metrics.draft_acceptance_rate, ".0%"), " accepted"),
            (str(metrics.tokens), " tokens"),
            (str(len(course)), " steps"),
        )
        room, pieces = self.size.width, list[Segment]()
        for figure, label in figures:
            room -= len(figure + label)
            if room < 0:
                break
            pieces += [self.ink(figure, "hero"), self.ink(f"{label}  ", "label")]
            room -= 2
        return pieces


class FiguresScreen(Screen[Place | None]):
    """Shows one of `subjects`, which are asked for again at every redraw; redraws while `live()`.

    Ends with the place that is to be shown in the text, or None.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "go_there", "show in the text", key_display="⏎", id="figures.go"),
        Binding("left_square_bracket", "turn(-1)", "before", key_display="[", id="figures.before", group=_SUBJECT),
        Binding("right_square_bracket", "turn(1)", "next", key_display="]", id="figures.next", group=_SUBJECT),
        Binding("up", "scroll(-1)", "A line up", show=False, id="figures.up"),
        Binding("down", "scroll(1)", "A line down", show=False, id="figures.down"),
        Binding("pageup", "scroll(-10)", "Up", show=False, id="figures.page-up"),
        Binding("pagedown", "scroll(10)", "Down", show=False, id="figures.page-down"),
        Binding("escape,q", "dismiss", "close", key_display="esc", id="figures.close"),
    ]

    def __init__(self, subjects: Callable[[], Sequence[Subject]], live: Callable[[], bool], shown: int = 0) -> None:
        super().__init__()
        self.HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (120, "-normal"), (150, "-wide")]
        self.VERTICAL_BREAKPOINTS = [(0, "-low"), (34, "-high"), (50, "-tall")]
        self._subjects = subjects
        self._live = live
        self._shown = shown

    def compose(self) -> ComposeResult:
        """From the course as a whole to its parts."""
        yield FiguresHeader(id="header")
        yield CourseStrip(id="course")
        with VerticalScroll(id="plates", can_focus=False), Grid():
            speeds = CoursePlot(lambda stretch: stretch.tokens_per_second, 0, id="speeds")
            yield _titled(speeds, f"tokens/s, {WINDOW} steps")
            depths = CoursePlot(lambda stretch: stretch.mean_acceptance_length, 2, id="depths")
            yield _titled(depths, f"effective depth, {WINDOW} steps")
            yield _titled(Histogram(id="histogram"), "accepted per draft")
            yield _titled(Positions(id="positions"), "accepted by position")
            yield _titled(Kinds(id="kinds"), f"accepted by kind of token, %   ~ fewer than {FEW} drafts")
        yield KeyLine()

    def on_mount(self) -> None:
        """Show it, and go on to as long as something changes."""
        self._strip.focus()
        self._timer = self.set_interval(1 / _REDRAWS_PER_S, self._tick, pause=not self._live())
        self.call_after_refresh(self.show)

    def on_resize(self) -> None:
        """Plot for the new width."""
        self.call_after_refresh(self.show)

    def _tick(self) -> None:
        self.show()
        if not self._live():
            self._timer.pause()

    def show(self) -> None:
        """Draw the figures as of now."""
        subjects = self._subjects()
        self._shown = min(self._shown, len(subjects) - 1)
        subject = subjects[self._shown]
        course = subject.tally.course
        self.query_one(FiguresHeader).show_subjects(subjects, self._shown)
        self._strip.show_course(course)
        for plot in self.query(CoursePlot):
            plot.show_course(course)
        for panel in self.query(TallyPanel):
            panel.show_tally(subject.tally, subject.average)

    def action_turn(self, by: int) -> None:
        """Show another subject."""
        self._shown = (self._shown + by) % len(self._subjects())
        self.show()

    def action_scroll(self, by: int) -> None:
        """Scroll what stands below the timeline."""
        self.query_one("#plates", VerticalScroll).scroll_relative(y=by, animate=False)

    def action_go_there(self) -> None:
        """Close, and show the step under the cursor in the text."""
        if self._strip.cursor is not None:
            subject = self._subjects()[self._shown]
            self.dismiss(Place(subject.name, subject.first + self._strip.cursor))

    @property
    def _strip(self) -> CourseStrip:
        return self.query_one(CourseStrip)


def _titled(plate: _Plate, title: str) -> _Plate:
    plate.border_title = title
    plate.add_class("plate")
    return plate
