"""The inspector, driven by keys and mouse over recorded steps: a first-time user's way to "why was that rejected?"."""

import math
from collections.abc import AsyncIterator

import pytest
from textual.pilot import Pilot

from peagle_cli.errors import PeagleError
from peagle_cli.tui.app import ReplayApp
from peagle_cli.tui.model import Kind
from peagle_cli.tui.screens.replay import ReplayScreen
from peagle_cli.tui.widgets.inspector import Inspector
from peagle_cli.tui.widgets.lane import LaneText
from tests.recordings import Recorded

Replaying = Pilot[int | PeagleError]


def words(pilot: Replaying) -> str:
    """All that is to be read."""
    return "\n".join(strip.text for strip in pilot.app.screen._compositor.render_strips())


def inspector(pilot: Replaying) -> Inspector:
    return pilot.app.screen.query_one(Inspector)


@pytest.fixture(params=[(60, 20), (120, 40)])
async def pilot(recorded: Recorded, request: pytest.FixtureRequest) -> AsyncIterator[Replaying]:
    app = ReplayApp(recorded.load(), 1.0, math.inf, None)
    async with app.run_test(size=request.param) as pilot:
        screen = pilot.app.screen
        assert isinstance(screen, ReplayScreen)
        screen.seek(len(recorded.told[0]))
        await pilot.pause()
        yield pilot


async def test_says_why_the_last_rejected_draft_was_rejected(pilot: Replaying) -> None:
    assert "inspect" in words(pilot), "the last line names the key"
    await pilot.press("i")
    await pilot.pause()
    seen = inspector(pilot).seen
    assert seen is not None and seen.fate == "rejected"
    assert "✗ rejected" in words(pilot) and "The target's" in words(pilot)
    assert "ms per token" in " ".join(words(pilot).split())


async def test_goes_from_token_to_token_over_steps_and_rejections(pilot: Replaying) -> None:
    await pilot.press("i")
    last = inspector(pilot).seen
    assert last is not None
    await pilot.press("p")
    before = inspector(pilot).seen
    assert before is not None and before.fate == "rejected" and before.batch.step < last.batch.step
    for _ in range(len(before.batch.drafted) - before.place):
        await pilot.press("right")
    own = inspector(pilot).seen
    assert own is not None and own.fate == "correction" and own.batch == before.batch
    await pilot.press("right")
    following = inspector(pilot).seen
    assert following is not None and (following.place, following.batch.step) == (0, before.batch.step + 1)
    await pilot.press("left", "n")
    assert inspector(pilot).seen == last or following.batch.step < last.batch.step
    await pilot.press("escape")
    assert inspector(pilot).seen is None and not inspector(pilot).display


async def test_numbers_steps_as_the_timeline_does(pilot: Replaying) -> None:
    await pilot.press("i", "down", "down", "down", "down", "down", "down")
    seen = inspector(pilot).seen
    assert seen is not None and f"step {seen.batch.step} " in words(pilot)
    await pilot.press("escape", "t")
    await pilot.pause()
    assert f"step {seen.batch.step} " in words(pilot)


async def test_a_click_on_a_token_opens_it(pilot: Replaying) -> None:
    view = pilot.app.screen.query_one("#transcript", LaneText)
    row, column, text = first_token_in_view(view)
    await pilot.click(view, offset=(column + view.gutter.left, row + view.gutter.top))
    await pilot.pause()
    seen = inspector(pilot).seen
    assert seen is not None
    assert text.strip() in seen.token.text


def first_token_in_view(view: LaneText) -> tuple[int, int, str]:
    """Its row and column, and what is seen of it."""
    top = view.scroll_offset.y
    for row, fragments in enumerate(view._layout.rows[top : top + view.size.height]):
        column = 0
        for fragment in fragments:
            if view.transcript.spans[fragment.span].step >= 0 and fragment.kind is not Kind.REJECTED:
                return row, column, fragment.text
            column += fragment.width
    raise AssertionError("no token is in view")


async def test_lanes_of_a_race_can_be_chosen(pilot: Replaying) -> None:
    await pilot.press("end")
    await pilot.pause()
    await pilot.press("i", "l")
    first = inspector(pilot).seen
    await pilot.press("l")
    second = inspector(pilot).seen
    assert first is not None and second is not None
    assert first.batch.lane != second.batch.lane


async def test_stands_beside_lanes_that_can_be_read_or_in_their_place(pilot: Replaying) -> None:
    await pilot.press("end")
    await pilot.pause()
    await pilot.press("i")
    await pilot.pause()
    readable = {bool(view.region) for view in pilot.app.screen.query("LanePane LaneText")}
    assert readable == {pilot.app.size.height > 20}
    assert inspector(pilot).size.height >= 12
    await pilot.press("escape")
    await pilot.pause()
    assert all(view.region for view in pilot.app.screen.query("LanePane LaneText"))
