"""Keys of the user's own: what the table may say, and that screen, line of keys and help page heed it."""

import math
from typing import Any

import pytest
from textual.pilot import Pilot

from peagle_cli.errors import BadInputError
from peagle_cli.recording.recording import load_to_show
from peagle_cli.tui.app import ReplayApp
from peagle_cli.tui.keys import bindings, keymap
from peagle_cli.tui.screens.help import HelpScreen
from peagle_cli.tui.session import Phase
from peagle_cli.tui.widgets.keyline import KeyLine
from peagle_cli.tui.widgets.status import Situation, status
from tests.recordings import Recorded


def words(pilot: Pilot[Any]) -> str:
    lines = pilot.app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip) for strip in lines)


def test_takes_one_key_and_several_in_either_notation() -> None:
    assert keymap({"chat": {"pause": "ctrl+x"}, "replay.play": ["p", "-"]}) == {
        "chat.pause": "ctrl+x",
        "replay.play": "p,-",
    }


def test_two_can_change_places() -> None:
    assert keymap({"chat.pause": "f8", "chat.step": "f5"}) == {"chat.pause": "f8", "chat.step": "f5"}


@pytest.mark.parametrize(
    ("table", "complaint"),
    [
        ({"chat.puase": "x"}, "chat.puase"),
        ({"chat.pause": "f5+ctrl"}, "f5"),
        ({"chat.pause": "ctrl+"}, "ctrl"),
        ({"chat.pause": "nonsense"}, "nonsense"),
        ({"chat.pause": []}, "no key"),
        ({"chat.pause": 5}, "no key"),
        ({"chat.pause": "f8"}, "chat.step"),
        ({"chat.pause": "ctrl+t"}, "app.theme"),
    ],
)
def test_says_what_is_wrong_with_the_rest(table: dict[str, object], complaint: str) -> None:
    with pytest.raises(BadInputError) as caught:
        keymap(table)
    assert complaint in caught.value.message


def test_every_binding_can_be_given_another_key() -> None:
    assert {"app.theme", "chat.pause", "watch.pause", "prompt.send", "race.leave", "replay.play"} <= set(bindings())


async def test_screen_line_of_keys_and_help_heed_them(recorded: Recorded) -> None:
    app = ReplayApp(load_to_show(recorded.path), 1.0, math.inf, None)
    app.set_keymap(keymap({"replay.play": "ctrl+g", "replay.help": ["f1", "question_mark"]}))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("ctrl+g")
        await pilot.pause()
        assert "^g play" in words(pilot)
        playing = app.screen.playing  # type: ignore[attr-defined]
        await pilot.press("space")
        assert app.screen.playing is playing  # type: ignore[attr-defined]
        await pilot.press("question_mark")
        await pilot.pause()
        assert isinstance(app.screen, HelpScreen)
        assert "^g" in words(pilot) and "f1 ?" in words(pilot)


def test_sentences_name_keys_as_bound() -> None:
    names = {"chat.restart": "f12", "watch.step": "x", "watch.pause": "y"}
    assert status(Situation(Phase.BROKEN), names.__getitem__)[1] == "f12 starts it again"
    assert status(Situation(Phase.REPLYING, paused=True), names.__getitem__)[1] == "x takes a step, y goes on"


@pytest.mark.parametrize("width", [60, 120])
async def test_the_last_line_shows_whole_hints_that_can_be_clicked(recorded: Recorded, width: int) -> None:
    async with ReplayApp(load_to_show(recorded.path), 1.0, math.inf, None).run_test(size=(width, 20)) as pilot:
        await pilot.pause()
        line = words(pilot).splitlines()[-1]
        assert "space play, pause" in line and line.rstrip().endswith("f1 help" if width == 60 else "^p palette")
        await pilot.click(KeyLine, offset=(line.index("f1 help"), 0))
        await pilot.pause()
        assert isinstance(pilot.app.screen, HelpScreen)
