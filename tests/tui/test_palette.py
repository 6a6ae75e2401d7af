"""The palette: what it lists, and that it says and does what the keys do."""

import pytest
from textual.command import CommandPalette

from peagle_cli.tui.commands import COMMANDS
from peagle_cli.tui.keys import keymap
from peagle_cli.tui.palette import Palette
from peagle_cli.tui.screens.help import HelpScreen
from tests.tui.driving import Driver, chat


async def opened(driver: Driver) -> None:
    await driver.ready()
    await driver.press("ctrl+p")
    await driver.until(lambda: isinstance(driver.app.screen, CommandPalette) and driver.says("/inspect"))


@pytest.mark.usefixtures("ready")
async def test_has_every_command_and_every_other_key() -> None:
    async with chat() as driver:
        await driver.ready()
        titles = [str(hit.text) async for hit in Palette(driver.screen).discover()]
        assert {f"/{command.name}" for command in COMMANDS} <= {title.split()[0] for title in titles}
        assert {"/depth 0", "/method none", "/copy code", "/theme light", "Draft deeper", "New line"} <= set(titles)
        assert len(set(titles)) == len(titles)


@pytest.mark.usefixtures("ready")
async def test_shows_keys_as_bound_finds_by_what_is_done_and_does_it() -> None:
    async with chat() as driver:
        driver.app.set_keymap(keymap({"chat.figures": "f12", "watch.figures": "x"}))
        await opened(driver)
        line = next(line for line in driver.words().splitlines() if "/figures" in line)
        assert line.split()[:3] == ["/figures", "f12", "x"]
        await driver.press(*"itskeys")
        await driver.until(lambda: driver.says("/help") and not driver.says("/figures"))
        await driver.press("enter")
        await driver.until(lambda: isinstance(driver.app.screen, HelpScreen))
