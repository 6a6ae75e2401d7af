"""Slow motion in the chat, and tokens that are looked at while the engine is held."""

import pytest

from peagle_cli.tui.widgets.inspector import Inspector
from tests.tui.driving import chat


@pytest.mark.usefixtures("ready")
async def test_goes_step_by_step_at_a_pace_and_at_full_speed_again() -> None:
    async with chat(prompt="Hello", max_tokens=3000) as driver:
        await driver.replying()
        await driver.press("<", "<", "<", "<")
        await driver.until(lambda: driver.says("Slow motion: 1 step a second"))
        await driver.pilot.pause(0.2)
        steps = driver.steps
        await driver.pilot.pause(0.5)
        assert driver.steps <= steps + 2
        await driver.until(lambda: driver.steps > steps + 1)
        await driver.press(">", ">", ">", ">")
        await driver.until(lambda: driver.steps > steps + 12)
        await driver.press("escape")
        await driver.ready()


@pytest.mark.usefixtures("ready")
async def test_tokens_of_a_paused_reply_can_be_inspected_with_their_candidates() -> None:
    async with chat(prompt="Hello", max_tokens=3000) as driver:
        await driver.replying(steps=4)
        await driver.press("space", "i")
        inspector = driver.screen.query_one(Inspector)
        await driver.until(lambda: inspector.seen is not None)
        assert inspector.seen is not None and inspector.seen.target
        await driver.until(lambda: driver.says("entropy"))
        await driver.press("escape")
        await driver.until(lambda: driver.view.has_focus)
        await driver.press("escape")
        await driver.ready()
