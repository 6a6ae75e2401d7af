"""The last line of a screen: the keys that act now, and what they do."""

from collections.abc import Iterator
from functools import partial
from itertools import groupby
from typing import NamedTuple

from rich.cells import cell_len
from rich.segment import Segment
from textual import events
from textual.binding import ActiveBinding

from peagle_cli.tui.widgets.panel import Panel, Pieces

_STOP, _HELP, _PALETTE = "stop", "help", "command_palette"
_PALETTE_TOO_FROM = 100  # columns: narrower lines have room for one of the two
_GAP = 2  # cells


class Hint(NamedTuple):
    """Keys that belong together, each with its name, and the word for what they do."""

    keys: tuple[tuple[str, ActiveBinding], ...]
    word: str

    @property
    def enabled(self) -> bool:
        """Whether any of them would do something now."""
        return any(active.enabled for _, active in self.keys)

    @property
    def cells(self) -> int:
        """How wide it is, without the gap to the next one."""
        names: int = sum(cell_len(name) for name, _ in self.keys)
        return names + self.between * (len(self.keys) - 1) + 1 + cell_len(self.word)

    @property
    def between(self) -> int:
        """Cells between the keys: names of one letter need none."""
        return int(any(len(name) > 1 for name, _ in self.keys))

    def does(self, action: str) -> bool:
        """Whether this is what it does."""
        return any(active.binding.action == action for _, active in self.keys)


class KeyLine(Panel):
    """Shows as many keys as fit whole, the focused widget's first, and at the right end those that stop what runs and
    that lead to all others. A key that would do nothing now is dim; where not all fit, it is left out.

    Textual's own footer cuts words at the edge, and mounts a widget for every key whenever one of them changes.
    """

    def __init__(self) -> None:
        super().__init__()
        self._places: list[tuple[range, ActiveBinding]] = []

    def on_mount(self) -> None:
        """Follow what keys do."""
        self.screen.bindings_updated_signal.subscribe(self, lambda _: self.redraw())

    def draw(self) -> list[Pieces]:
        """Draw it."""
        self._places = []
        hints = list(self._hints())
        pinned = self._pinned(hints)
        free = [hint for hint in hints if hint not in pinned and not hint.does(_PALETTE)]
        room = self.size.width - _width(pinned)
        if _width(free) > room:
            free = [hint for hint in free if hint.enabled]
        while free and _width(free) > room:
            free.pop()
        gap = self.ink(" " * (room - _width(free)), "label")
        return [[*self._drawn(free, 0), gap, *self._drawn(pinned, room)]]

    def on_click(self, event: events.Click) -> None:
        """Do what the key under the mouse does."""
        event.stop()
        active = next((active for place, active in self._places if event.x in place), None)
        if active is not None:
            self.call_next(partial(self.app.run_action, active.binding.action, active.node))

    def _hints(self) -> Iterator[Hint]:
        """Every action that has a key that is to be shown, once; neighbours of one group together."""
        actions: dict[str, ActiveBinding] = {}
        for active in self.screen.active_bindings.values():
            if active.binding.show or active.binding.action == _PALETTE:
                actions.setdefault(active.binding.action, active)
        ordered = sorted(actions.values(), key=lambda active: active.node is not self.screen.focused)
        for group, members in groupby(ordered, key=lambda active: active.binding.group):
            named = [(self.app.get_key_display(active.binding), active) for active in members]
            if group is None:
                yield from (Hint((each,), each[1].binding.description) for each in named)
            else:
                yield Hint(tuple(named), group.description if len(named) > 1 else named[0][1].binding.description)

    def _pinned(self, hints: list[Hint]) -> list[Hint]:
        stop = [hint for hint in hints if hint.does(_STOP) and hint.enabled]
        leading = [hint for action in (_HELP, _PALETTE) for hint in hints if hint.does(action)]
        return stop + (leading if self.size.width >= _PALETTE_TOO_FROM else leading[:1])

    def _drawn(self, hints: list[Hint], column: int) -> Pieces:
        """The hints from a column on; remembers where they are."""
        pieces: list[Segment] = []
        for hint in hints:
            start = column + _GAP // 2
            pieces.append(self.ink(" " * (_GAP // 2), "label"))
            for number, (name, active) in enumerate(hint.keys):
                space = " " * (hint.between if number + 1 < len(hint.keys) else 1)
                pieces.append(self.ink(name + space, "key" if active.enabled else "off"))
                last = number + 1 == len(hint.keys)
                end = start + cell_len(name) + (1 + cell_len(hint.word) if last else 0)
                self._places.append((range(start, end), active))
                start = end + hint.between
            pieces.append(self.ink(hint.word + " " * (_GAP // 2), "label" if hint.enabled else "off"))
            column += _GAP + hint.cells
        return pieces


def _width(hints: list[Hint]) -> int:
    return sum(hint.cells + _GAP for hint in hints)
