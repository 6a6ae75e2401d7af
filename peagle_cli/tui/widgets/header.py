"""The top of the screen: what is running, and how it drafts."""

from rich.text import Text

from peagle_cli.engine.protocol import EngineInfo, LaneSetting
from peagle_cli.trace.events import METHOD_NAMES
from peagle_cli.tui.widgets.panel import Panel, Pieces

_METER, _METER_FROM = 16, 76  # deeper drafters, and narrower screens, get a number only


class ChatHeader(Panel):
    """Two lines: model, method and depth; below them engine, device, precision and drafter."""

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self._info: EngineInfo | None = None
        self._setting: LaneSetting | None = None

    def describe(self, info: EngineInfo | None, setting: LaneSetting | None) -> None:
        """Show this engine and this method and depth."""
        self._info, self._setting = info, setting
        self.refresh()

    def render(self) -> Text:
        """Draw it."""
        name = [self.ink("peagle", "title"), self.ink("  ", "label")]
        if self._info is None or self._setting is None:
            return self.lines([name, []])
        info, setting = self._info, self._setting
        drafter = info.drafters.get(setting.method)
        top = self._spread([*name, self.ink(info.model, "hero")], self._method(info, setting))
        machine = info.machine
        parts = (info.engine, machine.device, machine.dtype, f"{machine.weights} weights")
        bottom = self._spread(
            [self.ink(" · ".join(parts), "label")],
            [self.ink(f"drafter {drafter}" if drafter else "no drafter", "label")],
        )
        return self.lines([top, bottom])

    def _method(self, info: EngineInfo, setting: LaneSetting) -> Pieces:
        name = self.ink(METHOD_NAMES[setting.method], "value")
        deepest = max(info.max_depths.values(), default=0)
        if setting.method == "none":
            return [name]
        shown = deepest <= _METER and self.size.width >= _METER_FROM
        meter = "▰" * setting.depth + "▱" * (deepest - setting.depth) + " " if shown else ""
        return [
            name,
            self.ink("  depth ", "label"),
            self.ink(meter, "accepted"),
            self.ink(f"{setting.depth:>2}", "hero"),
        ]

    def _spread(self, left: Pieces, right: Pieces) -> Pieces:
        """Both ends of a line; the right one is kept whole, the left one cut where they meet."""
        room = self.size.width - sum(len(text) for text, _ in right) - 2
        cut: Pieces = []
        for text, style in left:
            cut.append((text[: max(0, room)], style))
            room -= len(text)
        return [*cut, self.ink(" " * max(2, room + 2), "label"), *right]
