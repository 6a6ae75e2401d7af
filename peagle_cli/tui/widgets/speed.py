"""The course of the reply's speed, as a plot."""

from math import ceil

from peagle_cli.tui.conversation import Reply
from peagle_cli.tui.widgets.plot import Plot

_POINTS_PER_CELL = 2


class SpeedPlot(Plot):
    """Tokens per second over the lane's seconds; a vertical line wherever depth or method changed.

    A redraw takes some milliseconds: callers show it a few times a second at most.
    """

    def show(self, reply: Reply | None) -> None:
        """Plot this reply as of now."""
        plot = self.plt
        plot.clear_figure()
        plot.frame(False)
        if reply is not None and len(reply.speeds) > 1:
            thinned = reply.speeds[:: max(1, len(reply.speeds) // (_POINTS_PER_CELL * max(1, self.size.width)))]
            seconds, speeds = zip(*thinned, strict=True)
            top = ceil(max(speeds) / 10) * 10
            plot.plot(seconds, speeds, marker="hd", color=self.color("token-accepted"), fillx=True)
            for second in reply.changes:
                plot.vline(second, color=self.color("accent"))
            plot.ylim(0, top)
            plot.yticks([0, top], ["0", f"{top}"])
            plot.xlim(0, seconds[-1])
            plot.xticks([0, seconds[-1]], ["0", f"{seconds[-1]:.{int(seconds[-1] < 10)}f} s"])
        self.refresh()
