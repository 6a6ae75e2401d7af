"""A screen as text, for snapshots: its words line by line, and the styles that they are drawn in."""

from collections.abc import Iterable
from itertools import groupby
from string import ascii_letters
from typing import Any

from textual.app import App
from textual.screen import ModalScreen
from textual.strip import Strip


def strips_of(app: App[Any]) -> list[Strip]:
    """What is on the screen, line by line; of a screen that lies over another, its own part."""
    strips = app.screen._compositor.render_strips()
    if not isinstance(app.screen, ModalScreen):
        return strips
    own = app.screen.children[0].region
    if not own:  # the palette's frame is hidden, what is in it is not
        return strips
    return [strip.crop(own.x, own.right) for strip in strips[own.y : own.bottom]]


def words_of(strips: Iterable[Strip]) -> str:
    """The text alone."""
    return "".join(f"{strip.text.rstrip()}\n" for strip in strips)


def styles_of(strips: Iterable[Strip]) -> str:
    """For each line the runs of cells that are drawn alike, as "a12 b5"; below that, what the letters stand for."""
    letters: dict[str, str] = {}
    lines = []
    for strip in strips:
        runs = groupby(strip, key=lambda segment: str(segment.style))
        cells = [(style, sum(segment.cell_length for segment in run)) for style, run in runs]
        lines.append(" ".join(f"{letters.setdefault(style, ascii_letters[len(letters)])}{n}" for style, n in cells))
    return "".join(f"{line}\n" for line in [*lines, *(f"{letter} {style}" for style, letter in letters.items())])
