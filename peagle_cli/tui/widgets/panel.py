"""What side panels share: text in named styles, which the style sheet fills in."""

from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual.widget import Widget

from peagle_cli.tui.conversation import Reply

_EIGHTHS = " ▏▎▍▌▋▊▉"
_INKS = ("title", "label", "value", "hero", "draft", "target", "accepted", "bonus", "correction", "rejected", "off")

Pieces = list[tuple[str, Style]]
"""One line of a panel: pieces of text and their styles."""


class Panel(Widget):
    """Draws figures of one reply as text, in cells that never move."""

    DEFAULT_CSS = "Panel { text-wrap: nowrap; text-overflow: clip; }"
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"panel--{ink}" for ink in _INKS}

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self.reply: Reply | None = None

    def show(self, reply: Reply | None) -> None:
        """Show this reply's figures as of now."""
        self.reply = reply
        self.refresh()

    def ink(self, text: str, name: str) -> tuple[str, Style]:
        """A piece of text in a named style."""
        return text, self.get_component_rich_style(f"panel--{name}")

    def lines(self, lines: list[Pieces]) -> Text:
        """Lines as one text, cut at the panel's edge."""
        text = Text(end="")
        for number, pieces in enumerate(lines):
            text.append("\n" if number else "")
            for piece, style in pieces:
                text.append(piece, style)
        return text


def bar(share: float, cells: int) -> str:
    """A bar over `share` of `cells`, exact to an eighth of a cell, padded to its whole width."""
    whole, rest = divmod(round(min(max(share, 0.0), 1.0) * cells * 8), 8)
    return ("█" * whole + (_EIGHTHS[rest] if rest else "")).ljust(cells)
