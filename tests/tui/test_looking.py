"""What the chat shows of a reply: in every size, along the timeline, with and without rejected drafts."""

import pytest
from textual.color import Color
from textual.filter import NoColor

from peagle_cli.tui.model import Kind
from peagle_cli.tui.screens.figures import FiguresScreen
from tests.tui.driving import chat

SIZES = [(60, 20), (80, 24), (120, 36), (300, 100)]


@pytest.mark.usefixtures("ready")
async def test_goes_along_the_timeline_and_back_to_the_prompt() -> None:
    async with chat(prompt="Hello", max_tokens=150, size=(80, 24)) as driver:
        await driver.ready()
        await driver.press("shift+tab", "home")
        await driver.until(lambda: driver.says("steps 0–"))
        assert driver.view.scroll_y < driver.view.max_scroll_y
        await driver.press("escape")
        await driver.until(lambda: driver.prompt.has_focus and driver.view.following)
        await driver.press("f10", "home", "right", "enter")
        await driver.until(lambda: driver.view.scroll_y < driver.view.max_scroll_y)
        await driver.type("/figures")
        await driver.press("enter")
        await driver.until(lambda: isinstance(driver.app.screen, FiguresScreen))
        await driver.until(lambda: driver.says("[this reply]"))


@pytest.mark.usefixtures("ready")
async def test_the_reader_is_left_alone_until_back_at_the_end() -> None:
    async with chat(prompt="Hello", max_tokens=3000, size=(60, 20)) as driver:
        await driver.until(lambda: driver.view.max_scroll_y > 5)
        await driver.press("home")
        await driver.until(lambda: driver.view.scroll_y == 0)
        rows = driver.view.virtual_size.height
        await driver.until(lambda: driver.view.virtual_size.height > rows + 2)
        assert driver.view.scroll_y == 0
        assert driver.says("end: back to the latest")
        await driver.press("end")
        await driver.until(lambda: driver.view.following)
        rows = driver.view.virtual_size.height
        await driver.until(lambda: driver.view.virtual_size.height > rows + 2)
        assert driver.view.scroll_y == driver.view.max_scroll_y
        await driver.press("escape")


@pytest.mark.usefixtures("ready")
async def test_shows_more_or_fewer_of_the_rejected_drafts() -> None:
    async with chat(prompt="Hello", max_tokens=40, depth=5) as driver:
        await driver.ready()

        def kinds() -> set[Kind]:
            return {fragment.kind for row in driver.view._layout.rows for fragment in row}

        assert Kind.REJECTED in kinds() and Kind.DISCARDED not in kinds()
        await driver.press("f9")
        assert {Kind.REJECTED, Kind.DISCARDED} <= kinds()
        await driver.press("f9")
        assert not {Kind.REJECTED, Kind.DISCARDED} & kinds()


@pytest.mark.usefixtures("ready")
@pytest.mark.parametrize("size", SIZES)
async def test_fits_every_size_and_follows_resizes(size: tuple[int, int]) -> None:
    async with chat(prompt="Hello", max_tokens=60, size=size) as driver:
        await driver.ready()
        for width, height in (size, SIZES[0], size):
            await driver.pilot.resize_terminal(width, height)
            await driver.pilot.pause()
            assert driver.says("P-EAGLE") and driver.says("60 tokens") and driver.says("ready")
            assert driver.prompt.region.bottom <= height - 1
            assert driver.view.size.height >= 9
            assert all(sum(f.width for f in row) <= driver.view.size.width for row in driver.view._layout.rows)


@pytest.mark.usefixtures("ready")
async def test_every_state_has_a_style_besides_its_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with chat() as driver:
        await driver.ready()
        kinds = (Kind.ACCEPTED, Kind.BONUS, Kind.CORRECTION, Kind.REJECTED, Kind.DISCARDED, Kind.PLAIN)
        styles = [driver.view.get_component_rich_style(f"transcript--{kind}") for kind in kinds]
        assert len({(style.bold, style.underline, style.strike, style.italic) for style in styles}) == len(kinds)
        strips = driver.app.screen._compositor.render_strips()
        assert any(isinstance(each, NoColor) for each in driver.app._filters)
        shown = [strip.apply_filter(NoColor(), Color(0, 0, 0)) for strip in strips]
        colours = {part.style.color for strip in shown for part in strip if part.style and part.style.color}
        assert all(colour.is_default for colour in colours)
