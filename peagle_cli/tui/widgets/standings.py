"""What a race has come to: the lanes by speed, and the speed of every depth as predicted and as measured."""

from peagle_cli.trace.advice import Advice
from peagle_cli.trace.events import METHOD_NAMES, Method
from peagle_cli.tui.race import Race, Standing
from peagle_cli.tui.widgets.panel import Panel, Pieces
from peagle_cli.tui.widgets.plot import Plot
from peagle_cli.wording import number

_COLOURS: dict[Method, str] = {"eagle3": "token-bonus", "peagle": "token-accepted"}
_COLUMNS = ("tok/s", "× plain", "× EAGLE-3", "per step")


class Standings(Panel):
    """A table of the lanes, the fastest on top."""

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self._race: Race | None = None

    def show_race(self, race: Race) -> None:
        """Show how this race stands."""
        self._race = race
        self.redraw()

    def draw(self) -> list[Pieces]:
        """Draw it."""
        if self._race is None:
            return []
        head = "".join(f"{column:>11}" for column in _COLUMNS)
        lines: list[Pieces] = [[self.ink(f"   {'lane':<10}{head}", "title")]]
        return lines + [self._row(place, each) for place, each in enumerate(self._race.standings(), 1)]

    def _row(self, place: int, standing: Standing) -> Pieces:
        best = place == 1 and standing.tokens_per_second is not None
        ink = "hero" if best else "value"
        figures = (
            number(standing.tokens_per_second, ".1f"),
            number(standing.over_plain, ".2f"),
            number(standing.over_eagle3, ".2f"),
            number(standing.per_step, ".2f"),
        )
        return [
            self.ink(f"{place} ", "label"),
            self.ink(f" {standing.runner.name:<10}", ink),
            self.ink("".join(f"{figure:>11}" for figure in figures), ink),
        ]


class AdvicePlot(Plot):
    """Tokens per second by depth: predictions as curves, measured lanes as points. Redrawn only when they change."""

    def show(self, advice: Advice) -> None:
        """Plot this advice."""
        plot = self.plt
        plot.clear_figure()
        plot.frame(False)
        plot.title("tokens/s by depth: predicted and measured")
        speeds = [prediction.tokens_per_second for prediction in advice.predictions]
        speeds += [check.measured_tokens_per_second for check in advice.checks]
        depths = [prediction.depth for prediction in advice.predictions]
        for method, colour in _COLOURS.items():
            curve = [p for p in advice.predictions if p.method in ("none", method)]
            if len(curve) > 1:
                ink = self.color(colour)
                plot.plot([p.depth for p in curve], [p.tokens_per_second for p in curve], marker="braille", color=ink)
                measured = [check for check in advice.checks if check.method == method]
                plot.scatter(
                    [check.depth for check in measured],
                    [check.measured_tokens_per_second for check in measured],
                    marker=METHOD_NAMES[method][0],
                    color=ink,
                    label=f" {METHOD_NAMES[method]}",
                )
        plot.ylim(0, 1.1 * max(speeds))
        plot.yticks([0, round(max(speeds))])
        plot.xticks(sorted(set(depths)))
        self.refresh()
