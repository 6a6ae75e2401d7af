"""The bundled demos, to choose from."""

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from peagle_cli.recording.demos import Demo
from peagle_cli.tui.widgets.keyline import KeyLine


class DemosScreen(Screen[None]):
    """Hands the demo that is chosen to `show`, as often as one is."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,ctrl+d,ctrl+c", "leave", "leave", key_display="q", priority=True, id="demos.leave"),
    ]

    def __init__(self, demos: Sequence[Demo], show: Callable[[Demo], None]) -> None:
        super().__init__()
        self._demos = demos
        self._show = show

    def compose(self) -> ComposeResult:
        """A line for each demo."""
        yield Static("Recorded sessions that show what speculative decoding does. Enter replays one.")
        yield OptionList(*(Option(_prompt(demo)) for demo in self._demos))
        yield KeyLine()

    @on(OptionList.OptionSelected)
    def _chosen(self, message: OptionList.OptionSelected) -> None:
        self._show(self._demos[message.option_index])

    def action_leave(self) -> None:
        """End the program."""
        self.app.exit(0)


def _prompt(demo: Demo) -> Text:
    return Text.assemble((demo.name, "bold"), f"\n{demo.title}\n")
