"""One lane of a race: its text in colours, its figures, and how far it has come on its own clock."""

from typing import Protocol

from textual import on
from textual.app import ComposeResult
from textual.containers import Container, Vertical

from peagle_cli.trace.course import Course
from peagle_cli.tui.race import Runner
from peagle_cli.tui.widgets.course import CourseStrip
from peagle_cli.tui.widgets.panel import Panel, Pieces
from peagle_cli.tui.widgets.transcript import TranscriptView

STACKED_BELOW = 100
"""On screens with fewer columns, lanes stand above each other."""

_LANE_CELLS = 36  # a lane wants at least so many
_ONE_LINE_FROM = 64  # cells in which name and figures fit side by side
_NAME = 10
_FLAG = "⚑"


class Field(Protocol):
    """All that run beside a lane, and how many tokens a reply may have."""

    @property
    def runners(self) -> list[Runner]:
        """The lanes."""
        ...

    @property
    def max_tokens(self) -> int:
        """Where the track ends."""
        ...


def lay_out_lanes(lanes: Container, columns: int) -> None:
    """Place as many lanes side by side as have room for words on a screen of so many columns."""
    count = max(1, len(lanes.children))
    beside = 1 if columns < STACKED_BELOW else min(count, max(1, columns // _LANE_CELLS))
    lanes.styles.grid_size_columns = beside
    lanes.styles.grid_size_rows = -(-count // beside)


class LaneText(TranscriptView, can_focus=False):
    """The reply; the lanes' keys are the screen's."""

    def on_resize(self) -> None:
        """Keep the end in view: lanes grow and shrink with what stands below them."""
        self.call_after_refresh(self.action_follow)


class LaneFigures(Panel):
    """The lane's name and figures: on one line where there is room, else on two."""

    def __init__(self, field: Field, runner: Runner) -> None:
        super().__init__()
        self._field = field
        self._runner = runner

    def show_runner(self, runner: Runner) -> None:
        """Show another runner."""
        self._runner = runner
        self.redraw()

    def draw(self) -> list[Pieces]:
        """Draw it."""
        name = self.ink(self._runner.name.ljust(_NAME), "hero" if self._runner.finished else "title")
        if self.size.width >= _ONE_LINE_FROM:
            figures = [*self._per_step(), *self._speed(), *self._clock()]
            room = self.size.width - len(name.text) - sum(len(piece.text) for piece in figures) - 2
            return [[name, *self._track(room), self.ink("  ", "label"), *figures]]
        clock = self._clock()
        room = self.size.width - sum(len(piece.text) for piece in clock) - 1
        return [
            self.spread([name], self._speed()),
            [*self._track(room), self.ink(" ", "label"), *clock],
        ]

    def _per_step(self) -> Pieces:
        length = self._runner.reply.metrics.mean_acceptance_length
        number = "1.00" if length is None else f"{length:.2f}"
        return [self.ink(number, "value"), self.ink("/step ", "label")]

    def _speed(self) -> Pieces:
        speed = self._runner.reply.metrics.tokens_per_second
        lead = [] if self.size.width >= _ONE_LINE_FROM else [*self._per_step(), self.ink(" ", "label")]
        return [*lead, self.ink("   –" if speed is None else f"{speed:>4.0f}", "hero"), self.ink(" tok/s", "label")]

    def _clock(self) -> Pieces:
        place = self._place()
        return [
            self.ink(f"{self._runner.clock_s:>6.2f} s", "value" if self._runner.finished else "label"),
            self.ink(f" {_FLAG}{place}" if place else "   ", "hero"),
        ]

    def _place(self) -> int | None:
        """In which order the lanes have come to their end, each by its own clock; None while this one runs."""
        if not self._runner.finished:
            return None
        return 1 + sum(r.finished and r.clock_s < self._runner.clock_s for r in self._field.runners)

    def _track(self, room: int) -> Pieces:
        tokens = self._runner.reply.metrics.tokens
        share = 1.0 if self._runner.finished else tokens / self._field.max_tokens
        done = round(share * max(0, room))
        return [self.ink("━" * done, "draft"), self.ink("─" * (room - done), "off")]


class LanePane(Vertical):
    """Shows one runner of a race."""

    def __init__(self, field: Field, runner: Runner) -> None:
        super().__init__()
        self.runner = runner
        self._shown = runner.transcript
        self._spans = 0
        self._figures = LaneFigures(field, runner)
        self._course = CourseStrip()
        self._text = LaneText()

    def compose(self) -> ComposeResult:
        """Figures and timeline above the text."""
        yield self._figures
        yield self._course
        yield self._text

    def on_mount(self) -> None:
        """Show the reply as it is."""
        self._text.show(self._shown)

    def show_runner(self, runner: Runner) -> None:
        """Show another runner of the same setting."""
        self.runner = runner
        self._figures.show_runner(runner)

    def show_text(self) -> None:
        """Show what the reply has got since the last call."""
        if not self.is_mounted:
            return
        if self.runner.transcript is not self._shown:
            self._shown = self.runner.transcript
            self._spans = len(self._shown.spans)
            self._text.show(self._shown)
        elif len(self._shown.spans) != self._spans:
            self._spans = len(self._shown.spans)
            self._text.update()

    def show_figures(self, whole: Course | None = None) -> None:
        """Show figures and timeline as of now; `whole` is the timeline of a reply that is known to its end."""
        self._figures.redraw()
        course = self.runner.reply.tally.course
        if whole is None:
            self._course.show_course(course)
        else:
            self._course.show_course(whole, len(course))

    def look_at(self, batch: int) -> None:
        """Show a batch on the timeline and in the text."""
        self._course.look_at(batch)
        self._text.show_batches(range(batch, batch + 1))

    def on_descendant_blur(self) -> None:
        """Show the end again, now that nobody goes along the timeline."""
        self._course.look_at(None)
        self._text.show_batches(range(0))
        self._text.action_follow()

    @on(CourseStrip.Moved)
    def _looked_at(self, message: CourseStrip.Moved) -> None:
        if message.batches.stop <= len(self._shown.batches):
            self._text.show_batches(message.batches)
