"""Acceptance by draft position, as bars."""

from rich.text import Text

from peagle_cli.tui.conversation import Reply
from peagle_cli.tui.widgets.panel import Panel, Pieces, bar

_MAX_ROWS = 12


class Acceptance(Panel):
    """One bar per position that any of the engine's drafters can fill, so that the number of rows never changes."""

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self._positions = 0

    def set_positions(self, deepest: int) -> None:
        """Make room for drafts of up to `deepest` tokens."""
        self._positions = min(deepest, _MAX_ROWS)
        self.styles.height = self._positions + 1
        self.refresh()

    def render(self) -> Text:
        """Draw it."""
        shares = self.reply.metrics.per_position_acceptance if self.reply else ()
        rows = [self._row(position, shares) for position in range(self._positions)]
        return self.lines([[self.ink("accepted by position", "title")], *rows])

    def _row(self, position: int, shares: tuple[float, ...]) -> Pieces:
        known = position < len(shares)
        number = f"{shares[position]:.0%}" if known else "–"
        cells = max(0, self.size.width - 9)
        return [
            self.ink(f"{position + 1:>2} ", "label" if _in_use(self.reply, position) else "off"),
            self.ink(bar(shares[position] if known else 0, cells), "accepted"),
            self.ink(number.rjust(5), "value" if known else "off"),
        ]


def _in_use(reply: Reply | None, position: int) -> bool:
    return reply is not None and reply.setting.method != "none" and position < reply.setting.depth
