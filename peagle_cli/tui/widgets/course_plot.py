"""How a figure changed over the steps of a reply or a conversation, as a plot."""

from collections.abc import Callable
from math import ceil

from peagle_cli.trace.course import Course, Stretch
from peagle_cli.tui.widgets.plot import Plot

Figure = Callable[[Stretch], float | None]

WINDOW = 8
"""A point is the figure over at least so many steps, the last of which is the point's."""

_POINTS_PER_CELL = 2
_MARKS_AT_MOST = 12
_Run = list[tuple[int, float]]


class CoursePlot(Plot):
    """`figure` of a course, step by step; a vertical line wherever depth or method changed or a reply began.

    A redraw takes some milliseconds: callers show it a few times a second at most.
    """

    def __init__(self, figure: Figure, digits: int, id: str | None = None) -> None:
        super().__init__(id=id)
        self._figure = figure
        self._digits = digits
        self._drawn: tuple[Course, int] | None = None

    def show_course(self, course: Course) -> None:
        """Plot this course as of now."""
        end = len(course)
        if (now := (course, end)) == self._drawn:
            return
        self._drawn = now
        plot = self.plt
        plot.clear_figure()
        plot.frame(False)
        runs = self._runs(course, end)
        if runs:
            for run in runs:
                steps, values = zip(*run, strict=True)
                plot.plot(steps, values, marker="braille", color=self.color("token-accepted"))
            for segment in course.segments[1:] if len(course.segments) <= _MARKS_AT_MOST else ():
                plot.vline(segment.begin, color=self.color("accent"))
            self._scale(max(value for run in runs for _, value in run), end)
        self.refresh()

    def _runs(self, course: Course, end: int) -> list[_Run]:
        """The points, in runs without a gap."""
        count = min(end, _POINTS_PER_CELL * max(1, self.size.width))
        runs: list[_Run] = []
        gap = True
        for i in range(count):
            until = ceil((i + 1) * end / count)
            value = self._figure(course.stretch(max(0, until - max(WINDOW, end // count)), until))
            if value is None:
                gap = True
            elif gap:
                runs.append([(until - 1, value)])
                gap = False
            else:
                runs[-1].append((until - 1, value))
        return runs

    def _scale(self, largest: float, end: int) -> None:
        plot = self.plt
        plot.ylim(0, largest * 1.05)
        plot.yticks([0, largest], ["0", f"{largest:.{self._digits}f}"])
        last = max(1, end - 1)
        plot.xlim(0, last)
        plot.xticks([0, last], ["0", f"{last}"])

    def on_resize(self) -> None:
        """Plot for the new width at the next call."""
        self._drawn = None
