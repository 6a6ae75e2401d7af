"""A lane's reply as rows of a terminal: wrapped, and styled by what happened to each token."""

from collections.abc import Sequence
from enum import Enum

from rich.cells import cell_len, set_cell_size

from peagle_cli.text import one_line, printable
from peagle_cli.trace.events import Changed, DraftBatch, Event, Failed, Finished
from peagle_cli.trace.metrics import Metrics

TAB = "    "


class Style(Enum):
    """How a piece of a row looks, as the parameters of the terminal's SGR sequence (ECMA-48, 8.3.117)."""

    PLAIN = "0"
    MARK = "7;1"
    PROMPT = "1"
    QUIET = "2"
    ACCEPTED = "4;32"
    REJECTED = "9;31"
    CORRECTION = "33"
    BONUS = "94"
    FAILED = "31"


Piece = tuple[str, Style]
Row = list[Piece]


def clipped(row: Row, width: int) -> str:
    """The row as terminals understand it, filled with blanks or cut to `width` cells."""
    parts, left = [], width
    for text, style in row:
        safe = printable(text)
        shown = safe if cell_len(safe) <= left else set_cell_size(safe, left)
        left -= cell_len(shown)
        parts.append(f"\x1b[{style.value}m{shown}\x1b[0m" if shown else "")
    return "".join(parts) + " " * left


def beside(rows: Sequence[Row], widths: Sequence[int]) -> str:
    """One row of each pane, beside each other."""
    bar = f" \x1b[{Style.QUIET.value}m│\x1b[0m "
    return bar.join(clipped(row, width) for row, width in zip(rows, widths, strict=True)).rstrip(" ")


class Pane:
    """One lane's reply as it grows, `width` cells wide."""

    def __init__(self, width: int) -> None:
        self.width = width
        self._rows: list[Row] = [[]]
        self._column = 0
        self._metrics = Metrics()

    def add(self, event: Event) -> None:
        """Take in the lane's next event."""
        self._metrics.add(event)
        match event:
            case DraftBatch():
                self._add_batch(event)
            case Changed():
                self._note(f"── {event.words} ──", Style.QUIET)
            case Finished():
                self._note(f"[{event.reason}]", Style.QUIET)
            case Failed():
                self._note(event.message, Style.FAILED)

    def tail(self, height: int) -> list[Row]:
        """The last rows, filled up with empty ones."""
        rows = self._rows[-height:]
        return [*rows, *([] for _ in range(height - len(rows)))]

    def figures(self) -> str:
        """What the reply has come to, in a line."""
        metrics = self._metrics
        parts = [f"{metrics.tokens} tokens"]
        if metrics.tokens_per_second is not None:
            parts.append(f"{metrics.tokens_per_second:.1f} tok/s")
        if metrics.mean_acceptance_length is not None:
            parts.append(f"{metrics.mean_acceptance_length:.2f} per step")
        return " · ".join(parts)

    def _add_batch(self, batch: DraftBatch) -> None:
        for token in batch.tokens[: batch.accepted]:
            self._write(token.text, Style.ACCEPTED)
        for token in batch.rejected[:1]:  # those behind it were never tested
            self._write(one_line(token.text), Style.REJECTED)
        for token in batch.tokens[batch.accepted :]:
            self._write(token.text, _bonus_style(batch))

    def _note(self, text: str, style: Style) -> None:
        self._break()
        self._write(text, style)
        self._break()

    def _break(self) -> None:
        if self._column:
            self._new_row()

    def _new_row(self) -> None:
        self._rows.append([])
        self._column = 0

    def _write(self, text: str, style: Style) -> None:
        first, *rest = printable(text.replace("\t", TAB)).split("\n")
        self._write_line(first, style)
        for line in rest:
            self._new_row()
            self._write_line(line, style)

    def _write_line(self, text: str, style: Style) -> None:
        """Write within a line: a token that does not fit begins a row, and one longer than a row is cut up."""
        if self._column and self._column + cell_len(text) > self.width:
            self._new_row()
            text = text.lstrip(" ")
        while cell_len(text) > self.width:
            part = _fitting(text, self.width)
            self._rows[-1].append((part, style))
            self._new_row()
            text = text[len(part) :]
        if text:
            self._rows[-1].append((text, style))
            self._column += cell_len(text)


def _fitting(text: str, width: int) -> str:
    """The longest beginning of `text` that fits into `width` cells; one character at least."""
    end = min(len(text), width)
    while end > 1 and cell_len(text[:end]) > width:
        end -= 1
    return text[:end]


def _bonus_style(batch: DraftBatch) -> Style:
    if not batch.drafted:
        return Style.PLAIN
    return Style.BONUS if batch.accepted == len(batch.drafted) else Style.CORRECTION
