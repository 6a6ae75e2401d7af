"""The choice of a theme: the screen behind it shows the one that is looked at."""

from collections.abc import Callable
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from peagle_cli import themes
from peagle_cli.errors import BadInputError
from peagle_cli.tui.keys import key_of


class ThemesScreen(ModalScreen[str | None]):
    """Lists all themes, beginning at `current`, and hands the one that is looked at to `preview`. Ends with the chosen
    one's name, None where the old one is to stay."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,ctrl+t", "dismiss(None)", "back", id="themes.back"),
    ]

    def __init__(self, current: str, preview: Callable[[str], None]) -> None:
        super().__init__()
        self._current = current
        self._preview = preview
        self._names = list(themes.available())

    def compose(self) -> ComposeResult:
        """A line for each theme, and one below it that says what it is."""
        yield (listed := OptionList(*(self._option(name) for name in self._names), id="themes"))
        listed.border_title = "theme"
        listed.border_subtitle = f"⏎ keeps it · {key_of(self.app, 'themes.back')} leaves the old one"

    def on_mount(self) -> None:
        """Begin at the one that is shown."""
        listed = self.query_one(OptionList)
        listed.highlighted = self._names.index(self._current)
        listed.focus()

    @on(OptionList.OptionHighlighted)
    def _looked_at(self, message: OptionList.OptionHighlighted) -> None:
        self._preview(self._names[message.option_index])

    @on(OptionList.OptionSelected)
    def _chosen(self, message: OptionList.OptionSelected) -> None:
        self.dismiss(self._names[message.option_index])

    @staticmethod
    def _option(name: str) -> Option:
        """A theme that cannot be used says why, and cannot be chosen; a faint one can."""
        try:
            theme = themes.read(themes.file_of(name))
        except BadInputError as error:
            return Option(Text(f"{name}\n  {error.message}"), disabled=True)
        remark = f"\n  hard to read: {', '.join(faint)}" if (faint := theme.too_faint()) else ""
        return Option(Text.assemble((name, "bold"), f"\n  {theme.description}{remark}"))
