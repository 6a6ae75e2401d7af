"""The replay screen, with its keys."""

import math
from collections.abc import AsyncIterator

import pytest
from textual.pilot import Pilot

from peagle_cli.errors import PeagleError
from peagle_cli.trace.events import DraftBatch
from peagle_cli.tui.app import ReplayApp
from peagle_cli.tui.playback import Playback
from peagle_cli.tui.screens import replay
from peagle_cli.tui.screens.figures import FiguresScreen
from peagle_cli.tui.screens.replay import ReplayScreen
from peagle_cli.tui.widgets.lane import LanePane
from peagle_cli.tui.widgets.timeline import Timeline
from tests.recordings import Recorded


def screen_of(pilot: Pilot[int | PeagleError]) -> ReplayScreen:
    screen = pilot.app.screen
    assert isinstance(screen, ReplayScreen)
    return screen


def rows(pilot: Pilot[int | PeagleError]) -> str:
    """All that is to be read."""
    return "\n".join(strip.text for strip in pilot.app.screen._compositor.render_strips())


@pytest.fixture
async def pilot(recorded: Recorded) -> AsyncIterator[Pilot[int | PeagleError]]:
    app = ReplayApp(recorded.load(), 1.0, math.inf, None)
    async with app.run_test(size=(120, 40)) as pilot:
        screen_of(pilot).seek(0)
        await pilot.pause()
        yield pilot


async def test_is_marked_with_the_recordings_hardware(pilot: Pilot[int | PeagleError], recorded: Recorded) -> None:
    text = rows(pilot)
    assert "REPLAY" in text
    assert recorded.load().header.machine.name in text
    assert f"recorded {recorded.load().header.created:%Y-%m-%d}" in text


async def test_steps_with_the_arrows(pilot: Pilot[int | PeagleError]) -> None:
    playback = screen_of(pilot).playback
    await pilot.press("right", "right", "right")
    assert playback.position == 4  # the start, and three steps
    assert "effective depth" in rows(pilot)
    await pilot.press("left")
    assert playback.position == 3
    await pilot.press("n")
    assert playback.reply is not None
    assert playback.reply.batches[-1].rejected


async def test_plays_and_pauses(pilot: Pilot[int | PeagleError]) -> None:
    screen = screen_of(pilot)
    await pilot.press("[", "[", "[", "[", "space")
    assert screen.playing
    await pilot.press("]", "]", "]", "]", "]")
    while screen.playing:
        await pilot.pause(0.02)
    assert screen.playback.position == screen.playback.length
    await pilot.press("[", "[", "[", "[", "[", "space")  # from the beginning again
    assert screen.playback.position < screen.playback.length


async def test_seeks_on_the_timeline(pilot: Pilot[int | PeagleError]) -> None:
    playback = screen_of(pilot).playback
    await pilot.press("end")
    assert playback.position == playback.length
    await pilot.press("home")
    assert playback.position <= 1
    await pilot.click(Timeline, offset=(60, 0))
    assert 1 < playback.position < playback.length


async def test_goes_along_the_steps(pilot: Pilot[int | PeagleError]) -> None:
    playback = screen_of(pilot).playback
    last = max(i for i, moment in enumerate(playback.recording.runs[0]) if isinstance(moment, DraftBatch)) + 1
    await pilot.press("right", "t", "end")
    assert playback.position == last
    await pilot.press("left")
    assert playback.position < last
    assert "in reply" not in rows(pilot)
    await pilot.press("home")
    assert playback.position == 2


async def test_goes_along_a_lane(pilot: Pilot[int | PeagleError]) -> None:
    playback = screen_of(pilot).playback
    await pilot.press("end")
    await pilot.pause()
    await pilot.press("t", "left", "left", "left")
    assert 0 < len(playback.runners[0].reply.tally.course) < len(playback.track(playback.runners[0]).course)
    assert len(pilot.app.screen.query(LanePane)) == 2


async def test_the_page_of_figures_shows_and_finds_steps(pilot: Pilot[int | PeagleError]) -> None:
    playback = screen_of(pilot).playback
    await pilot.press("right", "right", "right", "right", "f")
    assert isinstance(pilot.app.screen, FiguresScreen)
    await pilot.press("home", "right", "enter")
    assert isinstance(pilot.app.screen, ReplayScreen)
    assert len(playback.tally.course) == 2


async def test_a_race_is_shown_side_by_side(pilot: Pilot[int | PeagleError]) -> None:
    await pilot.press("end")
    await pilot.pause()
    assert [pane.size.height > 5 for pane in pilot.app.screen.query(LanePane)] == [True, True]
    assert "And three <b>more</b>." in rows(pilot)
    await pilot.press("home")
    await pilot.pause()
    assert not pilot.app.screen.query(LanePane)


async def test_shows_no_control_sequence(pilot: Pilot[int | PeagleError]) -> None:
    for _ in range(3):
        await pilot.press("end", "left")
        assert "\x1b" not in rows(pilot)


async def test_leaves(pilot: Pilot[int | PeagleError]) -> None:
    await pilot.press("q")
    assert pilot.app.return_value == 0


async def test_seeks_far_without_hanging(pilot: Pilot[int | PeagleError], monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a frame could hold two events only: the screen gets there step by step, and back at once."""
    monkeypatch.setattr(replay, "_EVENTS_PER_FRAME", 2)
    monkeypatch.setattr(replay, "_EVENTS_AHEAD_PAUSED", 0)
    screen = screen_of(pilot)
    screen.playback = Playback(screen.playback.recording, math.inf)
    length = screen.playback.length
    screen.seek(length)
    assert screen.seeking
    while screen.seeking:
        await pilot.pause(0.01)
    assert screen.playback.position == length
    for target in (length - 3, 5, length):
        screen.seek(target)
        assert not screen.seeking
        assert screen.playback.position == target
    assert not screen.playing
