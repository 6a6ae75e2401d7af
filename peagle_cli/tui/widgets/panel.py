"""What side panels share: text in named styles, which the style sheet fills in."""

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from textual.strip import Strip
from textual.widget import Widget

from peagle_cli.tui.conversation import Reply

_EIGHTHS = " ▏▎▍▌▋▊▉"
_INKS = (
    "title",
    "label",
    "value",
    "hero",
    "key",
    "chosen",
    "draft",
    "target",
    "accepted",
    "bonus",
    "correction",
    "rejected",
    "off",
)

Pieces = list[Segment]
"""One line of a panel."""


class Panel(Widget):
    """Draws figures of one reply as text, in cells that never move.

    Lines become strips without a detour through Textual's text layout, which would cost more than all figures do.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"panel--{ink}" for ink in _INKS}

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self.reply: Reply | None = None
        self._strips: list[Strip] | None = None

    def show(self, reply: Reply | None) -> None:
        """Show this reply's figures as of now."""
        self.reply = reply
        self.redraw()

    def redraw(self) -> None:
        """Draw again, for what is shown has changed."""
        self._strips = None
        self.refresh()

    def draw(self) -> list[Pieces]:
        """The lines to show in `self.size`, from the top. Lines that are too long are cut."""
        raise NotImplementedError

    def ink(self, text: str, name: str) -> Segment:
        """A piece of text in a named style."""
        return Segment(text, self.get_component_rich_style(f"panel--{name}"))

    def spread(self, left: Pieces, right: Pieces) -> Pieces:
        """Both ends of a line; the right one is kept whole, the left one cut where they meet, which "…" tells."""
        room = max(0, self.size.width - Strip(right).cell_length)
        begin = Strip(left)
        if begin.cell_length > room > 0:
            begin = Strip([*begin.crop(0, room - 1), Segment("…", left[-1].style)])
        return [*begin.adjust_cell_length(room, self.rich_style), *right]

    def render_line(self, y: int) -> Strip:
        """One line."""
        if self._strips is None:
            self._strips = [
                Strip(pieces).adjust_cell_length(self.size.width, self.rich_style) for pieces in self.draw()
            ]
        return self._strips[y] if y < len(self._strips) else Strip.blank(self.size.width, self.rich_style)

    def on_resize(self) -> None:
        """Draw for the new size."""
        self.redraw()

    def notify_style_update(self) -> None:
        """Draw in the new style."""
        super().notify_style_update()
        self._strips = None


def joined(parts: Sequence[str], cells: int) -> str:
    """As many of the parts as fit into so many cells, the first ones, with dots between them."""
    fits = [" · ".join(parts[:end]) for end in range(len(parts), 0, -1)]
    return next((line for line in fits if cell_len(line) <= cells), parts[0] if parts else "")


def bar(share: float, cells: int) -> str:
    """A bar over `share` of `cells`, exact to an eighth of a cell, padded to its whole width."""
    whole, rest = divmod(round(min(max(share, 0.0), 1.0) * cells * 8), 8)
    return ("█" * whole + (_EIGHTHS[rest] if rest else "")).ljust(cells)
