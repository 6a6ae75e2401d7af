"""The applications: their screens, their themes, and how `peagle chat` and `peagle compare` start them."""

import os
from collections.abc import Callable, Iterable
from functools import partial
from typing import ClassVar, TypeVar

from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen

from peagle_cli.engine.contest import Contest
from peagle_cli.engine.protocol import EngineInfo, EngineSpec, LaneSetting
from peagle_cli.errors import BadInputError, PeagleError
from peagle_cli.trace.comparison import Report
from peagle_cli.tui.commands import invocations
from peagle_cli.tui.options import ChatOptions
from peagle_cli.tui.screens.chat import ChatScreen
from peagle_cli.tui.screens.race import RaceScreen
from peagle_cli.tui.session import Session
from peagle_cli.tui.themes import THEMES, VARIABLE_DEFAULTS

Result = TypeVar("Result")


class PeagleApp(App[Result | PeagleError]):
    """What all have in common: themes, and that they end with a result or with what kept the engine from being
    opened."""

    TITLE = "peagle"
    CSS_PATH: ClassVar = ["styles.tcss", "race.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+t", "next_theme", "theme", show=False, id="app.theme"),
    ]

    def __init__(self, theme: str | None) -> None:
        # Without colours Textual must not turn ours into shades of grey, but leave the terminal's own.
        super().__init__(ansi_color=True if os.environ.get("NO_COLOR") else None)
        for each in THEMES:
            self.register_theme(each)
        self.theme = self._checked(theme or THEMES[0].name)

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Colours of token states for themes that name none."""
        return VARIABLE_DEFAULTS

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """The palette: every slash command with every argument it can have."""
        yield SystemCommand("Themes", "choose a theme with a preview", self.action_change_theme)
        if isinstance(screen, ChatScreen):
            for title, help, action in invocations(screen.deepest):
                yield SystemCommand(title, help, partial(screen.run_action, action))

    def _checked(self, theme: str) -> str:
        if theme not in self.available_themes:
            names = ", ".join(theme.name for theme in THEMES)
            raise BadInputError(f"There is no theme called {theme!r}.", f"Choose one of {names}.")
        return theme

    def action_next_theme(self) -> None:
        """The next of our themes."""
        names = [theme.name for theme in THEMES]
        following = names.index(self.theme) + 1 if self.theme in names else 0
        self.theme = names[following % len(names)]


class ChatApp(PeagleApp[int]):
    """Talks to one engine; ends with an exit code."""

    def __init__(self, options: ChatOptions) -> None:
        super().__init__(options.theme)
        self._options = options

    def get_default_screen(self) -> Screen[None]:
        """The chat."""
        return ChatScreen(self._options)


class RaceApp(PeagleApp[Report]):
    """Races lanes on one engine; ends with the report, None where the race was left before there was one."""

    def __init__(self, spec: EngineSpec, contest_for: Callable[[EngineInfo], Contest], theme: str | None) -> None:
        super().__init__(theme)
        self._spec = spec
        self._contest_for = contest_for

    def get_default_screen(self) -> Screen[LaneSetting | None]:
        """The race."""
        return RaceScreen(Session(self._spec), self._contest_for, hosted=False)


def run_chat(options: ChatOptions) -> int:
    """Open the chat screen and stay in it until the user leaves. Returns the exit code.

    Raises `BadInputError` when the theme is unknown or no engine can be opened with these options.
    """
    result = ChatApp(options).run()
    if isinstance(result, PeagleError):
        raise result
    return result or 0


def run_race(spec: EngineSpec, contest_for: Callable[[EngineInfo], Contest], theme: str | None) -> Report | None:
    """Open the race screen, run the contest that `contest_for` makes for the engine, and stay until the user leaves.

    Raises as `run_chat` does.
    """
    result = RaceApp(spec, contest_for, theme).run()
    if isinstance(result, PeagleError):
        raise result
    return result
