"""The course of the reply's speed, as a plot."""

from math import ceil

from textual.color import Color
from textual_plotext import PlotextPlot

from peagle_cli.tui.conversation import Reply

_POINTS_PER_CELL = 2
_Rgb = tuple[int, int, int]


class SpeedPlot(PlotextPlot):
    """Tokens per second over the lane's seconds; a vertical line wherever depth or method changed.

    A redraw takes some milliseconds: callers show it a few times a second at most.
    """

    theme = "textual-clear"  # leaves canvas and ticks to the style sheet

    def show(self, reply: Reply | None) -> None:
        """Plot this reply as of now."""
        plot = self.plt
        plot.clear_figure()
        plot.frame(False)
        if reply is not None and len(reply.speeds) > 1:
            thinned = reply.speeds[:: max(1, len(reply.speeds) // (_POINTS_PER_CELL * max(1, self.size.width)))]
            seconds, speeds = zip(*thinned, strict=True)
            top = ceil(max(speeds) / 10) * 10
            plot.plot(seconds, speeds, marker="hd", color=self._color("token-accepted"), fillx=True)
            for second in reply.changes:
                plot.vline(second, color=self._color("accent"))
            plot.ylim(0, top)
            plot.yticks([0, top], ["0", f"{top}"])
            plot.xlim(0, seconds[-1])
            plot.xticks([0, seconds[-1]], ["0", f"{seconds[-1]:.0f} s"])
        self.refresh()

    def _color(self, variable: str) -> _Rgb:
        return Color.parse(self.app.theme_variables[variable]).rgb
