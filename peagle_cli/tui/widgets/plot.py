"""What all plots on the screen share."""

from textual.color import Color
from textual_plotext import PlotextPlot


class Plot(PlotextPlot):
    """A plot in the colours of the theme."""

    theme = "textual-clear"  # leaves canvas and ticks to the style sheet

    def color(self, variable: str) -> tuple[int, int, int]:
        """The theme's colour of this name, as plotext takes it."""
        return Color.parse(self.app.theme_variables[variable]).rgb
