"""The applications: their screens, their themes, and how `peagle chat`, `peagle compare` and `peagle replay` start
them."""

import asyncio
import contextlib
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import ClassVar, TypeVar

from rich.console import RenderableType
from textual.app import App
from textual.binding import Binding, BindingType
from textual.driver import Driver
from textual.screen import Screen

from peagle_cli import locations, settings, themes
from peagle_cli.engine.contest import Contest
from peagle_cli.engine.protocol import EngineInfo, EngineSpec, LaneSetting
from peagle_cli.errors import EXIT_RUNTIME, BadInputError, PeagleError
from peagle_cli.recording import demos
from peagle_cli.recording.recording import Recording, load_to_show
from peagle_cli.text import printable
from peagle_cli.trace.comparison import Report
from peagle_cli.tui.colourless import colourless
from peagle_cli.tui.driver import LenientDriver
from peagle_cli.tui.keys import keymap
from peagle_cli.tui.options import ChatOptions
from peagle_cli.tui.palette import Palette
from peagle_cli.tui.playback import Playback
from peagle_cli.tui.screens.chat import ChatScreen
from peagle_cli.tui.screens.demos import DemosScreen
from peagle_cli.tui.screens.race import RaceScreen
from peagle_cli.tui.screens.replay import ReplayScreen
from peagle_cli.tui.screens.themes import ThemesScreen
from peagle_cli.tui.session import Session
from peagle_cli.tui.themes import textual_theme

_LOOK_S = 1.0  # between two looks at whether the user's theme was edited

Result = TypeVar("Result")


class PeagleApp(App[Result | PeagleError]):
    """What all have in common: themes, and that they end with a result or with what kept the engine from being
    opened."""

    TITLE = "peagle"
    CSS_PATH: ClassVar = ["styles.tcss", "race.tcss", "replay.tcss", "figures.tcss", "words.tcss", "inspector.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+t", "theme", "Choose a theme", show=False, id="app.theme"),
        Binding(
            "ctrl+p",
            "command_palette",
            "palette",
            tooltip="Everything that can be done",
            show=False,
            priority=True,
            id="app.palette",
        ),
    ]
    COMMANDS: ClassVar = {Palette}

    def __init__(self, theme: str | None) -> None:
        # Without colours Textual must not turn ours into shades of grey, but leave the terminal's own.
        super().__init__(ansi_color=True if colourless() else None)
        self.no_color = colourless()
        self.animation_level = "none"  # a view that glides does not get to where a growing text ends
        self._theme_file, self._theme_read = Path(), 0.0
        self.wear(theme or themes.DEFAULT)

    def on_mount(self) -> None:
        """Leave in order when told to end, so that the terminal is as it was."""
        asyncio.get_running_loop().add_signal_handler(
            signal.SIGTERM, partial(self.exit, return_code=128 + signal.SIGTERM)
        )
        if locations.themes().is_dir():
            self.set_interval(_LOOK_S, self._follow_edits)

    def stay(self) -> Result | None:
        """Run until the user leaves, with the keys of the settings. Returns the result, None for none.

        Raises `BadInputError` for settings that cannot be used, what kept the engine from being opened,
        `KeyboardInterrupt` after a Ctrl+C before the screen was there to see to it, `SystemExit` when the process was
        told to end, or the screen failed.
        """
        made = settings.read(settings.config_file())
        self.set_keymap(keymap(made.get("keys", {})))
        result = self.run(mouse=made.get("mouse", True))
        if isinstance(result, PeagleError):
            raise result
        if self.return_code is None:
            raise KeyboardInterrupt
        if self.return_code:
            raise SystemExit(self.return_code)
        return result

    def panic(self, *renderables: RenderableType) -> None:
        """End with what went wrong, and with exit code 1 also where the driver failed."""
        self.exit(return_code=EXIT_RUNTIME)
        super().panic(*renderables)

    def get_driver_class(self) -> type[Driver]:
        """Ours in place of Textual's for a terminal; others stay, as that for a browser."""
        chosen = super().get_driver_class()
        return LenientDriver if issubclass(LenientDriver, chosen) else chosen

    def wear(self, name: str) -> None:
        """Show everything in the theme `name`, as its file is now. Raises `BadInputError` when that cannot be used."""
        path = themes.file_of(name)
        self.register_theme(textual_theme(name, themes.read(path)))
        self._theme_file, self._theme_read = path, _edited(path)
        if self.theme == name:
            self.mutate_reactive(App.theme)
        else:
            self.theme = name

    def action_theme(self, name: str = "") -> None:
        """Wear a theme, or, without a name, choose one with a preview; and remember it."""
        if name:
            self._chosen(self.theme, name)
            return
        if isinstance(self.screen, ThemesScreen):
            return
        self.push_screen(ThemesScreen(self.theme, self._preview), partial(self._chosen, self.theme))

    def _preview(self, name: str) -> None:
        with contextlib.suppress(BadInputError):  # its file was spoilt since the list was made
            self.wear(name)

    def _chosen(self, before: str, name: str | None) -> None:
        """Keep the theme `name`, or go back to the one before."""
        if name is None:
            self._preview(before)
            return
        try:
            self.wear(name)
            settings.keep("theme", name)
        except PeagleError as error:
            self._say(error)

    def _follow_edits(self) -> None:
        """Show the user's theme anew when its file was edited; say so where that cannot be used."""
        if self._theme_file.parent != locations.themes() or _edited(self._theme_file) == self._theme_read:
            return
        self._theme_read = _edited(self._theme_file)
        try:
            self.wear(self._theme_file.stem)
        except BadInputError as error:
            self._say(error)

    def _say(self, error: PeagleError) -> None:
        self.notify(printable(str(error)), severity="warning", markup=False)


def _edited(path: Path) -> float:
    """When a file was changed last, in seconds; 0 for none."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


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

    def __init__(
        self, spec: EngineSpec, contest_for: Callable[[EngineInfo], Contest], theme: str | None, record: bool
    ) -> None:
        super().__init__(theme)
        self._spec = spec
        self._record = record
        self._contest_for = contest_for

    def get_default_screen(self) -> Screen[LaneSetting | None]:
        """The race."""
        return RaceScreen(Session(self._spec, self._record), self._contest_for, hosted=False)


class ReplayApp(PeagleApp[int]):
    """Replays a recording, or offers the demos where there is none."""

    def __init__(self, recording: Recording | None, speed: float, max_idle: float, theme: str | None) -> None:
        super().__init__(theme)
        self._recording = recording
        self._speed = speed
        self._longest_wait = max_idle

    def get_default_screen(self) -> Screen[None]:
        """The replay, or the choice."""
        if self._recording is None:
            return DemosScreen(demos.demos(), self._show)
        return ReplayScreen(Playback(self._recording, self._longest_wait), self._speed)

    def _show(self, demo: demos.Demo) -> None:
        playback = Playback(load_to_show(demo.path), self._longest_wait)
        self.push_screen(ReplayScreen(playback, self._speed, hosted=True))


def run_chat(options: ChatOptions) -> int:
    """Open the chat screen and stay in it until the user leaves. Returns the exit code.

    Raises `BadInputError` when the theme is unknown, and as `PeagleApp.stay` does.
    """
    return ChatApp(options).stay() or 0


def run_race(
    spec: EngineSpec, contest_for: Callable[[EngineInfo], Contest], theme: str | None, record: bool
) -> Report | None:
    """Open the race screen, run the contest that `contest_for` makes for the engine, and stay until the user leaves.

    Raises as `run_chat` does.
    """
    return RaceApp(spec, contest_for, theme, record).stay()


def run_replay(recording: Recording | None, speed: float, max_idle: float, theme: str | None) -> int:
    """Open the replay screen on `recording`, or on the choice of demos, and stay until the user leaves.

    `speed` and `max_idle` are those of `ReplayEngine`. Returns the exit code; raises as `run_chat` does.
    """
    return ReplayApp(recording, speed, max_idle, theme).stay() or 0
