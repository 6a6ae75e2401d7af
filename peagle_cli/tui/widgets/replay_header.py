"""The top of the replay: that it is one, of what, and on what hardware it was recorded."""

import datetime

from rich.cells import cell_len

from peagle_cli.text import one_line
from peagle_cli.trace.events import METHOD_NAMES
from peagle_cli.tui.playback import Playback
from peagle_cli.tui.widgets.panel import Panel, Pieces, joined


class ReplayHeader(Panel):
    """Two lines, and in a race a third with the prompt."""

    def __init__(self, playback: Playback, id: str | None = None) -> None:
        super().__init__(id=id)
        self._playback = playback

    def draw(self) -> list[Pieces]:
        """Draw it."""
        header, machine = self._playback.header, self._playback.header.machine
        parts = (header.engine, *dict.fromkeys((machine.name, *machine.parts)))
        when = f"{header.created.astimezone(datetime.UTC):%Y-%m-%d %H:%M} UTC"
        torn = ", its last line cut off" if self._playback.recording.torn else ""
        recorded = f"  recorded {when}{torn}"
        about = joined(parts, self.size.width - cell_len(recorded))
        name = [
            self.ink("peagle", "title"),
            self.ink("  REPLAY  ", "correction"),
            self.ink(one_line(header.model), "hero"),
        ]
        lines = [
            self.spread(name, self._setting()),
            self.spread([self.ink(one_line(about), "label")], [self.ink(recorded, "label")]),
        ]
        if self._playback.runners and self._playback.run:
            lines.append(self.spread([self.ink(one_line(self._playback.run.asked.messages[-1].content), "value")], []))
        return lines

    def _setting(self) -> Pieces:
        if self._playback.runners:
            return [self.ink(f"race of {len(self._playback.runners)}", "value")]
        if self._playback.reply is None:
            return []
        setting = self._playback.reply.setting
        if setting.method == "none":
            return [self.ink(METHOD_NAMES[setting.method], "value")]
        depth = [self.ink("  depth ", "label"), self.ink(f"{setting.depth:>2}", "hero")]
        return [self.ink(METHOD_NAMES[setting.method], "value"), *depth]
