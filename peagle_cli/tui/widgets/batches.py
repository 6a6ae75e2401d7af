"""The latest batches, a row each: a cell per drafted token, and what the target said after the accepted ones."""

from rich.cells import cell_len, set_cell_size

from peagle_cli.text import one_line
from peagle_cli.trace.events import DraftBatch, Token
from peagle_cli.tui.model import Kind, token_kind
from peagle_cli.tui.widgets.panel import Panel, Pieces

_STEP, _KEPT = 5, 5
_MIN_WORD = 5
_SPACE = "␣"
_NOTHING = "∅"


class Batches(Panel):
    """Newest on top. ✓ accepted, ✗ rejected, · never looked at; then the rejected draft → the target's own token."""

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self._cells = 0

    def set_positions(self, deepest: int) -> None:
        """Make room for drafts of up to `deepest` tokens."""
        self._cells = deepest
        self.redraw()

    def draw(self) -> list[Pieces]:
        """Draw it."""
        count = max(0, self.size.height - 1)
        latest = list(self.reply.batches)[: -count - 1 : -1] if self.reply else []
        cells, word = self._widths()
        head = f"{'step':>{_STEP - 1}} {'drafts':<{cells}} {'':>{word}}   {'target':<{word}}"
        title = [self.ink(set_cell_size(head, max(0, self.size.width - _KEPT)), "title"), self.ink(" kept", "title")]
        return [title, *(self._row(batch, cells, word) for batch in latest)]

    def _widths(self) -> tuple[int, int]:
        """Cells for the marks, cells for each of the two words."""
        rest = self.size.width - _STEP - _KEPT - 4
        cells = max(6, self._cells)
        return cells, max(_MIN_WORD, (rest - cells) // 2)

    def _row(self, batch: DraftBatch, cells: int, word: int) -> Pieces:
        kind = token_kind(batch, batch.accepted)
        rejected = word_of(batch.rejected[0]) if batch.rejected else ""
        marks = "✓" * batch.accepted + "✗" * bool(batch.rejected)
        unseen = "·" * (len(batch.drafted) - len(marks))
        kept = f"{batch.accepted}+1" if batch.drafted else "+1"
        return [
            self.ink(f"{batch.step:>{_STEP - 1}} ", "label"),
            self.ink(marks[: batch.accepted], "accepted"),
            self.ink(marks[batch.accepted :], "rejected"),
            self.ink((unseen).ljust(cells - len(marks)) + " ", "off"),
            self.ink(_fit_right(rejected, word), "rejected"),
            self.ink(" → ", "label"),
            self.ink(set_cell_size(word_of(batch.bonus), word), str(kind) if kind is not Kind.PLAIN else "value"),
            self.ink(kept.rjust(_KEPT), "value" if batch.accepted else "off"),
        ]


def word_of(token: Token) -> str:
    """A token in a table: no white space goes unseen."""
    text = one_line(token.text) or _NOTHING
    return text.replace(" ", _SPACE) if not text.strip() else text.strip()


def _fit_right(text: str, cells: int) -> str:
    """`text` at the right of `cells`, cut at its end where it is longer."""
    return (
        text.rjust(cells)
        if len(text) == cell_len(text) <= cells
        else set_cell_size(" " * (cells - cell_len(text)) + text, cells)
    )
