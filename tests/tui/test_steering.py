"""The reply in the chat is steered while it comes: depth, method, pauses, its end."""

import pytest

from tests.tui.driving import chat


@pytest.mark.usefixtures("ready")
async def test_depth_and_method_change_while_the_model_talks() -> None:
    async with chat(prompt="Hello", max_tokens=3000, depth=5) as driver:
        await driver.replying()
        assert driver.view.has_focus
        await driver.press("space", "left_square_bracket", "left_square_bracket", "full_stop")
        await driver.until(lambda: driver.marks("depth 5 → 3"))
        await driver.press("f4", "m", "full_stop")
        await driver.until(lambda: driver.marks("depth 3 → 4") and driver.marks("method P-EAGLE → EAGLE-3"))
        await driver.press("tab")
        await driver.type("/method none")
        await driver.press("enter", "f8")
        await driver.until(lambda: driver.marks("method EAGLE-3 → plain"))
        await driver.type("/depth 2")
        await driver.press("enter")
        await driver.until(lambda: driver.says("Plain decoding drafts nothing"))
        await driver.press("f2", "f2")
        await driver.type("/depth 99")
        await driver.press("enter")
        await driver.until(lambda: driver.says("99 is out of range"))
        await driver.press("escape")
        await driver.ready()
        assert driver.says("stopped")


@pytest.mark.usefixtures("ready")
async def test_pauses_takes_single_steps_and_goes_on() -> None:
    async with chat(prompt="Hello", max_tokens=3000) as driver:
        await driver.replying()
        await driver.press("space")
        await driver.until(lambda: driver.says("paused"))
        await driver.pilot.pause(0.2)
        steps = driver.steps
        await driver.pilot.pause(0.2)
        assert driver.steps == steps
        await driver.press("full_stop")
        await driver.until(lambda: driver.steps == steps + 1)
        await driver.press("space")
        await driver.until(lambda: driver.steps > steps + 3)
        await driver.press("escape")
        await driver.ready()


@pytest.mark.usefixtures("ready")
async def test_letters_typed_while_watching_go_to_the_prompt() -> None:
    async with chat(prompt="Hello", max_tokens=3000) as driver:
        await driver.replying()
        await driver.press("space")
        await driver.type("What")
        assert driver.prompt.text == "What"
        assert driver.prompt.has_focus
        await driver.press("enter")
        assert driver.prompt.text == "What"
        assert driver.says("A reply is running")
        await driver.press("escape")


@pytest.mark.usefixtures("ready")
async def test_one_ctrl_c_stops_the_reply_only() -> None:
    async with chat(prompt="Hello", max_tokens=3000) as driver:
        await driver.replying()
        await driver.press("ctrl+c")
        await driver.ready()
        assert driver.says("stopped")
        await driver.press("ctrl+c")
        assert driver.says("again to leave")


@pytest.mark.usefixtures("ready")
async def test_retries_and_clears() -> None:
    async with chat(prompt="First", max_tokens=4) as driver:
        await driver.ready()
        first = driver.screen._talk.conversation.reply
        await driver.type("/retry")
        await driver.press("enter")
        await driver.until(lambda: driver.screen._talk.conversation.reply is not first)
        await driver.ready()
        assert driver.says(", again")
        await driver.type("/clear")
        await driver.press("enter")
        await driver.pilot.pause()
        assert not driver.says("First")
        assert driver.screen._talk.conversation._turns == []
