"""Choosing a theme on the screen: seen before it is kept, remembered, and read again when its file is edited."""

import math
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from textual.color import Color
from textual.command import CommandPalette
from textual.pilot import Pilot

from peagle_cli import settings, themes
from peagle_cli.errors import BadInputError
from peagle_cli.tui.app import ReplayApp

DARK = themes.file_of("dark").read_text()


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PEAGLE_CONFIG_DIR", str(tmp_path))
    (tmp_path / "themes").mkdir()
    return tmp_path


def app(theme: str | None = None) -> ReplayApp:
    return ReplayApp(None, 1.0, math.inf, theme)


def _wears(pilot: Pilot[Any], name: str) -> bool:
    return pilot.app.theme == name


async def until(pilot: Pilot[Any], holds: Callable[[], bool]) -> None:
    for _ in range(500):
        if holds():
            return
        await pilot.pause(0.01)
    raise AssertionError("never held")


async def test_shows_a_theme_before_it_is_kept() -> None:
    async with app().run_test() as pilot:
        light = Color.parse(themes.read(themes.file_of("light")).background)
        await pilot.press("ctrl+t")
        await pilot.press("down", "down")
        await until(pilot, lambda: pilot.app.screen_stack[0].background_colors[1] == light)
        await pilot.press("escape")
        await until(pilot, lambda: pilot.app.theme == "dark")
        assert not settings.config_file().exists()


async def test_goes_through_all_of_them_and_back() -> None:
    async with app("terminal").run_test() as pilot:
        assert pilot.app.native_ansi_color
        await pilot.press("ctrl+t")
        for name in themes.available():
            await pilot.press("down")
            await until(pilot, partial(_wears, pilot, name))
            assert pilot.app.native_ansi_color is (name == "terminal")
        await pilot.press("escape", "ctrl+p")
        await until(pilot, lambda: isinstance(pilot.app.screen, CommandPalette))
        assert pilot.app.theme == "terminal"


async def test_remembers_the_one_that_was_kept_and_nothing_else_changes() -> None:
    settings.config_file().write_text("# mine\ndepth = 3 # deep\n")
    async with app().run_test() as pilot:
        await pilot.press("ctrl+t", "down", "enter")
        await until(pilot, lambda: settings.read(settings.config_file()).get("theme") == "high-contrast")
        assert pilot.app.theme == "high-contrast"
    assert settings.config_file().read_text().startswith("# mine\ndepth = 3 # deep\n")


async def test_reads_an_edited_file_again_and_keeps_the_old_colours_where_it_is_spoilt(places: Path) -> None:
    mine = places / "themes" / "mine.yaml"
    mine.write_text(DARK)
    async with app("mine").run_test() as pilot:
        await pilot.pause()

        def edit(text: str, second: int) -> None:
            mine.write_text(text)
            os.utime(mine, (second, second))

        def background() -> Color:
            return pilot.app.screen.background_colors[1]

        edit(DARK.replace("#12141c", "#102030"), 1)
        await until(pilot, lambda: background() == Color.parse("#102030"))
        edit("dark: ?", 2)
        await until(pilot, lambda: bool(pilot.app._notifications))
        assert background() == Color.parse("#102030")


def test_an_unknown_one_and_a_spoilt_one_are_refused(places: Path) -> None:
    (places / "themes" / "spoilt.yaml").write_text("dark: yes please")
    for name in ("mauve", "spoilt"):
        with pytest.raises(BadInputError, match=name):
            app(name)


async def test_a_spoilt_one_is_listed_with_what_is_wrong(places: Path) -> None:
    (places / "themes" / "spoilt.yaml").write_text("dark: yes please")
    (places / "themes" / "faint.yaml").write_text(DARK.replace('quiet: "#8089a3"', 'quiet: "#30333d"'))
    async with app().run_test() as pilot:
        await pilot.press("ctrl+t")
        await pilot.pause()
        lines = pilot.app.screen._compositor.render_strips()
        shown = "\n".join("".join(segment.text for segment in strip) for strip in lines)
        assert "hard to read: quiet" in shown
        assert "cannot be used" in shown
