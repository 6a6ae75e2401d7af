"""The reply's figures: speed, effective depth, acceptance, and where a step's time goes."""

from collections.abc import Sequence

from peagle_cli.trace.metrics import Metrics
from peagle_cli.tui.widgets.panel import Panel, Pieces, bar
from peagle_cli.wording import number

_LABEL, _NUMBER = 16, 8
_SPARKS = "▁▂▃▄▅▆▇█"


class Figures(Panel):
    """A table where there is room, one line where there is not."""

    def draw(self) -> list[Pieces]:
        """Draw it."""
        metrics = self.reply.metrics if self.reply else Metrics()
        return [self._line(metrics)] if self.size.height == 1 else self._table(metrics)

    def _table(self, m: Metrics) -> list[Pieces]:
        room = max(0, self.size.width - _LABEL - _NUMBER - 2)
        speeds = [speed for _, speed in self.reply.speeds] if self.reply else []
        tokens = f"over {m.tokens}" if m.tokens else ""
        return [
            [*self._row("tokens/s", number(self._speed(), ".0f"), "hero"), self.ink(sparkline(speeds, room), "draft")],
            [*self._row("overall", number(m.tokens_per_second, ".0f")), self.ink(tokens, "label")],
            [
                *self._row("effective depth", number(m.mean_acceptance_length, ".2f"), "hero"),
                self.ink(self._limit(), "label"),
            ],
            [*self._row("accepted", number(m.draft_acceptance_rate, ".0%")), self.ink("of the drafts", "label")],
            [*self._row("draft", _milliseconds(m.mean_draft_s)), self.ink(_share(m.draft_s, m, room), "draft")],
            [*self._row("verify", _milliseconds(m.mean_verify_s)), self.ink(_share(m.verify_s, m, room), "target")],
        ]

    def _line(self, m: Metrics) -> Pieces:
        return [
            self.ink(number(self._speed(), ".0f").rjust(4), "hero"),
            self.ink(" tok/s  ", "label"),
            self.ink(number(m.mean_acceptance_length, ".2f").rjust(5), "hero"),
            self.ink(f" {self._limit():<9} ", "label"),
            self.ink(number(m.draft_acceptance_rate, ".0%").rjust(5), "value"),
            self.ink(" accepted ", "label"),
            self.ink(number(_ms(m.mean_draft_s), ".1f").rjust(5), "draft"),
            self.ink(" + ", "label"),
            self.ink(_milliseconds(m.mean_verify_s), "target"),
        ]

    def _row(self, label: str, figure: str, style: str = "value") -> Pieces:
        return [self.ink(label.ljust(_LABEL), "label"), self.ink(figure.rjust(_NUMBER) + "  ", style)]

    def _speed(self) -> float | None:
        return self.reply.speed if self.reply else None

    def _limit(self) -> str:
        if self.reply is None or self.reply.setting.method == "none":
            return ""
        return f"of {self.reply.setting.depth} + 1"


def sparkline(values: Sequence[float], cells: int) -> str:
    """The latest `cells` values as columns between zero and the largest of them."""
    shown = values[-cells:] if cells else []
    top = max(shown, default=0.0)
    steps = len(_SPARKS) - 1
    return "".join(_SPARKS[round(value / top * steps)] if top else _SPARKS[0] for value in shown)


def _share(seconds: float, metrics: Metrics, cells: int) -> str:
    """A bar: how much of the steps' time this is."""
    whole = metrics.draft_s + metrics.verify_s
    return bar(seconds / whole, cells) if whole else ""


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1000


def _milliseconds(seconds: float | None) -> str:
    return f"{number(_ms(seconds), '.1f')} ms"
