"""Acceptance by draft position, as columns."""

from peagle_cli.tui.widgets.panel import Panel, Pieces

_EIGHTHS = " ▁▂▃▄▅▆▇█"
_WORDS = 3  # lines without bars: title, positions, percentages
_MIN_COLUMN = 3


class Acceptance(Panel):
    """One column per position that any of the engine's drafters can fill, so that nothing moves with the depth."""

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self._positions = 0

    def set_positions(self, deepest: int) -> None:
        """Make room for drafts of up to `deepest` tokens."""
        self._positions = deepest
        self.redraw()

    def draw(self) -> list[Pieces]:
        """Draw it."""
        title = [self.ink("accepted by position, %", "title")]
        if not self._positions:
            return [title]
        cells = max(_MIN_COLUMN, min(6, self.size.width // self._positions))
        shares = self.reply.metrics.per_position_acceptance if self.reply else ()
        height = max(1, self.size.height - _WORDS)
        bars = [self._bars(level, height, cells, shares) for level in reversed(range(height))]
        return [title, *bars, self._names(cells), self._numbers(cells, shares)]

    def _bars(self, level: int, height: int, cells: int, shares: tuple[float, ...]) -> Pieces:
        """One line of all columns: `level` counts from the bottom."""
        columns = (_EIGHTHS[min(8, max(0, round(share * height * 8) - level * 8))] for share in shares)
        return [self.ink("".join(f" {column * (cells - 1)}" for column in columns), "accepted")]

    def _names(self, cells: int) -> Pieces:
        in_use = self.reply.setting.depth if self.reply and self.reply.setting.method != "none" else 0
        names = [f"{position + 1:>{cells}}" for position in range(self._positions)]
        return [self.ink("".join(names[:in_use]), "label"), self.ink("".join(names[in_use:]), "off")]

    def _numbers(self, cells: int, shares: tuple[float, ...]) -> Pieces:
        known = "".join(f"{share * 100:>{cells}.0f}" for share in shares)
        unknown = "–".rjust(cells) * (self._positions - len(shares))
        return [self.ink(known, "value"), self.ink(unknown, "off")]
