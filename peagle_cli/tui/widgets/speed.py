"""The course of the reply's speed, as a plot."""

from textual.color import Color
from textual_plotext import PlotextPlot

from peagle_cli.tui.conversation import Reply


class SpeedPlot(PlotextPlot):
    """Tokens per second over the lane's seconds; a vertical line wherever depth or method changed.

    A redraw takes some milliseconds: callers show it a few times a second at most.
    """

    def show(self, reply: Reply | None) -> None:
        """Plot this reply as of now."""
        plot = self.plt
        plot.clear_data()
        plot.clear_figure()
        plot.frame(False)
        if reply is not None and reply.speeds:
            variables = self.app.theme_variables
            seconds, speeds = zip(*reply.speeds, strict=True)
            plot.plot(seconds, speeds, marker="braille", color=_rgb(variables["token-bonus"]))
            plot.ylim(0, max(speeds) * 1.1)
            for second in reply.changes:
                plot.vline(second, color=_rgb(variables["accent"]))
        self.refresh()


def _rgb(color: str) -> tuple[int, int, int]:
    return Color.parse(color).rgb
