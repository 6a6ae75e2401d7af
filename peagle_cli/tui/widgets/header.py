"""The top of the screen: what is running, and how it drafts."""

from rich.cells import cell_len

from peagle_cli.engine.protocol import EngineInfo, LaneSetting
from peagle_cli.text import one_line
from peagle_cli.trace.events import METHOD_NAMES
from peagle_cli.tui.widgets.panel import Panel, Pieces, joined

_METER, _METER_FROM = 16, 76  # deeper drafters, and narrower screens, get a number only
_NAME = max(len(name) for name in METHOD_NAMES.values())


class ChatHeader(Panel):
    """Two lines: model, method and depth; below them engine, device, precision and drafter."""

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self._info: EngineInfo | None = None
        self._setting: LaneSetting | None = None
        self._auto = False
        self._recording = False

    def describe(self, info: EngineInfo | None, setting: LaneSetting | None, *, auto: bool, recording: bool) -> None:
        """Show this engine and this method and depth, whether the depth follows the advice, and whether all this is
        recorded."""
        self._info, self._setting, self._auto, self._recording = info, setting, auto, recording
        self.redraw()

    def draw(self) -> list[Pieces]:
        """Draw it."""
        name = [self.ink("peagle", "title"), self.ink("  ", "label")]
        if self._info is None or self._setting is None:
            return [name, []]
        info, setting = self._info, self._setting
        drafter = info.drafters.get(setting.method)
        rec = [self.ink("  ● rec", "rejected")] if self._recording else []
        top = self.spread([*name, self.ink(one_line(info.model), "hero"), *rec], self._method(info, setting))
        parts = (info.engine, *info.machine.parts)
        named = f"  drafter {one_line(drafter)}" if drafter else "  no drafter"
        about = joined(parts, self.size.width - cell_len(named))
        bottom = self.spread([self.ink(about, "label")], [self.ink(named, "label")])
        return [top, bottom]

    def _method(self, info: EngineInfo, setting: LaneSetting) -> Pieces:
        deepest = max(info.max_depths.values(), default=0)
        depth = 0 if setting.method == "none" else setting.depth
        shown = deepest <= _METER and self.size.width >= _METER_FROM
        return [
            self.ink(f"{METHOD_NAMES[setting.method]:<{_NAME}}", "value"),
            self.ink("   auto " if self._auto else "  depth ", "correction" if self._auto else "label"),
            self.ink("▰" * depth + "▱" * (deepest - depth) + " " if shown else "", "accepted"),
            self.ink("–".rjust(2) if setting.method == "none" else f"{depth:>2}", "hero"),
        ]
