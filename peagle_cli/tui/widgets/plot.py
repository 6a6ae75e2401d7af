"""What all plots on the screen share."""

from textual.color import Color
from textual_plotext import PlotextPlot


class Plot(PlotextPlot):
    """A plot in the colours of the theme."""

    theme = "textual-clear"  # leaves canvas and ticks to the style sheet

    def color(self, variable: str) -> tuple[int, int, int] | int | str:
        """The theme's colour of this name, as plotext takes it: one of the terminal's own by its number."""
        colour = Color.parse(self.app.theme_variables[variable])
        if colour.ansi is None:
            return colour.rgb
        return colour.ansi if colour.ansi >= 0 else "default"
