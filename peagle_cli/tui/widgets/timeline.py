"""Where a replay stands: time, speed, and a bar to click on, with marks where requests begin or settings change."""

from textual.events import Click
from textual.message import Message

from peagle_cli.tui.playback import Playback
from peagle_cli.tui.widgets.panel import Panel, Pieces

_SPEED = 8


class Timeline(Panel):
    """One line."""

    class Sought(Message):
        """A place was clicked on: go to these seconds."""

        def __init__(self, seconds: float) -> None:
            super().__init__()
            self.seconds = seconds

    def __init__(self, playback: Playback, id: str | None = None) -> None:
        super().__init__(id=id)
        self._playback = playback
        self._now = (0.0, 1.0, False)  # seconds, speed, playing

    def show_now(self, seconds: float, speed: float, playing: bool) -> None:
        """Show this moment on the replay's clock."""
        if (now := (seconds, speed, playing)) != self._now:
            self._now = now
            self.redraw()

    def draw(self) -> list[Pieces]:
        """Draw it."""
        seconds, speed, playing = self._now
        return [
            [
                self.ink("▶ " if playing else "‖ ", "accepted" if playing else "correction"),
                *self._bar(seconds),
                self.ink(self._time(seconds), "value"),
                self.ink(f"{speed:g}×".rjust(_SPEED), "label" if speed == 1 else "correction"),
            ]
        ]

    def on_click(self, event: Click) -> None:
        """Go to where was clicked."""
        room = self._room()
        column = event.get_content_offset_capture(self).x - 2
        if room and 0 <= column < room:
            self.post_message(self.Sought((column + 1) / room * self._playback.seconds))

    def _bar(self, seconds: float) -> Pieces:
        room = self._room()
        done = self._column(seconds, room)
        marked = {self._column(self._playback.seconds_at(mark), room) for mark in self._playback.survey.marks}
        return [
            self.ink(
                "┿" if i in marked and i < done else "┼" if i in marked else "━" if i < done else "─", _ink(i < done)
            )
            for i in range(room)
        ]

    def _time(self, seconds: float) -> str:
        whole = f"{self._playback.seconds:.1f}"
        return f"  {seconds:{len(whole)}.1f} / {whole} s"

    def _room(self) -> int:
        return max(0, self.size.width - 2 - len(self._time(0.0)) - _SPEED)

    def _column(self, seconds: float, room: int) -> int:
        whole = self._playback.seconds
        return min(room, int(seconds / whole * room)) if whole else room


def _ink(done: bool) -> str:
    return "draft" if done else "off"
