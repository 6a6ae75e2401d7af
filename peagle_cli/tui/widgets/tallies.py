"""What drafts came to, as text: how many tokens they had accepted, up to which position, of which kind of token.

A share of few drafts has a `~` before it, and less colour.
"""

from rich.segment import Segment
from rich.style import Style

from peagle_cli.trace.kinds import TokenKind
from peagle_cli.trace.metrics import Metrics
from peagle_cli.trace.tally import FEW, Tally
from peagle_cli.tui.widgets.panel import Panel, Pieces, bar

_NOTHING = "Nothing has been drafted."
_AVERAGE = "┃"
_LABEL, _PERCENT, _COUNT = 3, 5, 7
_KIND, _CELL, _NARROW_CELL = 12, 6, 5
_HOTTEST = 0.45  # of the colour behind a share of 1


class TallyPanel(Panel):
    """Shows a tally, and beside it, where there is one, the `average` that it is held against."""

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self.tally = Tally()
        self.average: Metrics | None = None

    def show_tally(self, tally: Tally, average: Metrics | None) -> None:
        """Show these figures as of now."""
        self.tally, self.average = tally, average
        self.redraw()

    def share(self, part: int, whole: int, cells: int) -> Segment:
        """A share in per cent."""
        if not whole:
            return self.ink("·".rjust(cells), "off")
        few = whole < FEW
        return self.ink(f"{'~' if few else ''}{part / whole * 100:.0f}".rjust(cells), "label" if few else "value")


class Histogram(TallyPanel):
    """A line for each number of accepted tokens: how many drafts had so many."""

    def draw(self) -> list[Pieces]:
        """Draw it."""
        counts = self.tally.metrics.summary().acceptance_histogram
        if not counts:
            return [[self.ink(_NOTHING, "label")]]
        head = self.spread([self.ink("tokens", "label")], [self.ink(f"{'%':>{_PERCENT}}{'drafts':>{_COUNT}}", "label")])
        return [head, *(self._row(n, count, sum(counts), max(counts)) for n, count in enumerate(counts))]

    def _row(self, accepted: int, count: int, drafts: int, most: int) -> Pieces:
        room = max(0, self.size.width - _LABEL - _PERCENT - _COUNT)
        return [
            self.ink(f"{accepted:>{_LABEL - 1}} ", "label"),
            self.ink(bar(count / most, room), "accepted"),
            self.share(count, drafts, _PERCENT),
            self.ink(str(count).rjust(_COUNT), "label"),
        ]


class Positions(TallyPanel):
    """A line for each draft position: the share of drafts that had it accepted, beside the average's."""

    def draw(self) -> list[Pieces]:
        """Draw it."""
        metrics = self.tally.metrics
        if not metrics.drafts:
            return [[self.ink(_NOTHING, "label")]]
        average = f"{f'{_AVERAGE}avg':>{_PERCENT}}" if self.average else ""
        columns = f"{'%':>{_PERCENT}}{average}{'drafts':>{_COUNT}}"
        head = self.spread([self.ink("position", "label")], [self.ink(columns, "label")])
        known = zip(metrics.per_position_acceptance, metrics.drafts_per_position, strict=True)
        return [head, *(self._row(position, share, drafts) for position, (share, drafts) in enumerate(known))]

    def _row(self, position: int, share: float, drafts: int) -> Pieces:
        room = max(0, self.size.width - _LABEL - (2 if self.average else 1) * _PERCENT - _COUNT)
        return [
            self.ink(f"{position + 1:>{_LABEL - 1}} ", "label"),
            *self._bar(share, position, room),
            self.share(round(share * drafts), drafts, _PERCENT),
            *self._average(position),
            self.ink(str(drafts).rjust(_COUNT), "label"),
        ]

    def _bar(self, share: float, position: int, room: int) -> Pieces:
        drawn = bar(share, room)
        if self.average is None or room < 1:
            return [self.ink(drawn, "accepted")]
        column = min(room - 1, int(self.average.per_position_acceptance[position] * room))
        return [
            self.ink(drawn[:column], "accepted"),
            self.ink(_AVERAGE, "hero"),
            self.ink(drawn[column + 1 :], "accepted"),
        ]

    def _average(self, position: int) -> Pieces:
        if self.average is None:
            return []
        drafts = self.average.drafts_per_position[position]
        return [self.share(round(self.average.per_position_acceptance[position] * drafts), drafts, _PERCENT)]


class Kinds(TallyPanel):
    """A heat map: a line for each kind of token, a column for each position, in them the share that was accepted."""

    def draw(self) -> list[Pieces]:
        """Draw it."""
        positions = self.tally.by_kind.positions
        if not positions:
            return [[self.ink(self._nothing(), "label")]]
        room = self.size.width - _KIND - _COUNT
        cells = _CELL if positions * _CELL <= room else _NARROW_CELL
        shown = max(1, min(positions, room // cells))
        head = "".join(f"{position + 1:>{cells}}" for position in range(shown))
        more = "…" if shown < positions else ""
        lines: list[Pieces] = [[self.ink(f"{'':<{_KIND}}{head}{more}".ljust(room + _KIND), "label")]]
        lines[0].append(self.ink("drafts".rjust(_COUNT), "label"))
        return lines + [self._row(kind, shown, cells, room) for kind in TokenKind]

    def _row(self, kind: TokenKind, shown: int, cells: int, room: int) -> Pieces:
        counts = [self.tally.by_kind.counts(kind, position) for position in range(shown)]
        drafts = sum(self.tally.by_kind.counts(kind, position)[0] for position in range(self.tally.by_kind.positions))
        return [
            self.ink(kind.value.ljust(_KIND), "value" if drafts else "off"),
            *(self._heat(drafted, accepted, cells) for drafted, accepted in counts),
            self.ink(" " * max(0, room - shown * cells) + str(drafts).rjust(_COUNT), "label"),
        ]

    def _heat(self, drafted: int, accepted: int, cells: int) -> Segment:
        """A cell, the warmer the greater the share; the space between cells is part of it, so that they touch."""
        text, style, *_ = self.share(accepted, drafted, cells - 1)
        ink = self.get_component_styles("panel--accepted").color
        text += " "
        if drafted < FEW or ink.ansi is not None:
            return Segment(text, style)
        warm = self.background_colors[1].blend(ink, _HOTTEST * accepted / drafted)
        hero = self.get_component_rich_style("panel--hero")
        return Segment(text, hero + Style(bgcolor=warm.rich_color))

    def _nothing(self) -> str:
        if self.tally.metrics.drafts:
            return "This engine does not tell which drafts were rejected."
        return _NOTHING
