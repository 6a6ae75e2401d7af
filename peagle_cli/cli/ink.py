"""A transcript's spans as text for a terminal that scrolls: with the theme's colours as far as it has them.

Spans are safe to show; the only control sequences are those that choose a style.
"""

from collections.abc import Iterable

from rich.console import COLOR_SYSTEMS, Console
from rich.style import Style

from peagle_cli import themes
from peagle_cli.tui.colourless import colourless
from peagle_cli.tui.layout import extends
from peagle_cli.tui.model import HIDDEN, MARKS, Kind, Rejected, Span

_LOOKS: dict[Kind, tuple[str, str]] = {  # the colour's name in a theme, and what makes it out without one
    Kind.PROMPT: ("prompt", ""),
    Kind.SPEAKER: ("quiet", "bold"),
    Kind.PLAIN: ("plain", ""),
    Kind.ACCEPTED: ("accepted", "underline"),
    Kind.BONUS: ("bonus", "bold underline"),
    Kind.CORRECTION: ("correction", "bold"),
    Kind.REJECTED: ("rejected", "strike"),
    Kind.DISCARDED: ("discarded", "strike italic"),
    Kind.BAR: ("bar", ""),
    Kind.CHANGE: ("accent", "bold"),
    Kind.NOTE: ("quiet", ""),
    Kind.ERROR: ("error", "bold"),
}


_SIGNS = {**MARKS, Kind.CORRECTION: ("→", ""), Kind.BONUS: ("+", "")}
"""What marks tokens where there are no styles either: all that is left unmarked was accepted, or not drafted."""


class Ink:
    """Writes spans in the order in which they come, as the screen shows them. `rejected` says which drafts."""

    def __init__(self, theme: str | None) -> None:
        self.rejected: Rejected = "first"
        system = Console().color_system  # None for a terminal that knows no styles
        self._system = COLOR_SYSTEMS[system] if system else None
        self._marks = _SIGNS if self._system is None else MARKS if colourless() else {}
        colours = themes.read(themes.file_of(theme or themes.DEFAULT)).colours()
        self._styles = {kind: _style(colours[name], look) for kind, (name, look) in _LOOKS.items()}
        self._bar: Span | None = None  # it stands before the text that follows, once that is known
        self._last: tuple[str, Kind] = ("\n", Kind.NOTE)  # what was written last, and its kind

    def styled(self, text: str, kind: Kind) -> str:
        """`text`, which must be safe to show, in the style of `kind`."""
        return self._styles[kind].render(text, color_system=self._system)

    def written(self, spans: Iterable[Span]) -> str:
        """What to write for these spans. A bar is held back until the text behind it has come."""
        return "".join(self._written(span) for span in spans if span.kind not in HIDDEN[self.rejected])

    def _written(self, span: Span) -> str:
        if span.kind is Kind.BAR:
            self._bar = span
            return ""
        text, joined, bar = span.text, "", ""
        if self._bar is not None:
            end = _joins(self._last[0], text)
            joined, text = self.styled(text[:end], self._last[1]) if end else "", text[end:]
            bar, self._bar = self.styled(self._bar.text, Kind.BAR), None
        self._last = (span.text, span.kind)
        before, behind = self._marks.get(span.kind, ("", ""))
        return joined + bar + self.styled(f"{before}{text}{behind}", span.kind)


def _joins(before: str, text: str) -> int:
    """How many characters at the beginning of `text` are drawn as part of the character before them."""
    end = 0
    while end < len(text) and extends(before + text[:end], text[end]):
        end += 1
    return end


def _style(colour: str, look: str) -> Style:
    style = Style.parse(f"{look} {colour.removeprefix('ansi_')}")
    return style.without_color if colourless() else style
