"""A transcript too long to be laid out at once: the part in view first, the whole a little later."""

from collections.abc import AsyncIterator

import pytest
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from peagle_cli.tui.layout import Layout
from peagle_cli.tui.model import HIDDEN, Transcript
from peagle_cli.tui.widgets import transcript as view_module
from peagle_cli.tui.widgets.transcript import TranscriptView
from tests.tui.batches import batch

STEPS = 600


class Reading(App[None]):
    """A transcript and nothing else."""

    CSS = "TranscriptView { height: 1fr; overflow-y: scroll; }"

    def __init__(self, transcript: Transcript) -> None:
        super().__init__()
        self.transcript = transcript

    def compose(self) -> ComposeResult:
        yield TranscriptView()

    def on_mount(self) -> None:
        self.view.show(self.transcript)

    @property
    def view(self) -> TranscriptView:
        return self.query_one(TranscriptView)

    def shown(self) -> list[str]:
        """The rows in view."""
        return [self.view.render_line(y).text.rstrip() for y in range(self.view.size.height)]


def grow(transcript: Transcript, begin: int, end: int) -> None:
    for step in range(begin, end):
        transcript.add_batch(
            batch([f"word{step} ", "no"], 1, f"and{step}\n" if step % 5 == 4 else f"and{step} ", step=step)
        )


def expected(transcript: Transcript, width: int) -> list[str]:
    layout = Layout(width, HIDDEN["first"])
    layout.extend(transcript.spans)
    return ["".join(fragment.text for fragment in row).rstrip() for row in layout.rows]


@pytest.fixture
async def pilot(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Pilot[None]]:
    """As if no more than three hundred spans could be laid out at once."""
    monkeypatch.setattr(view_module, "_AT_ONCE", 300)
    monkeypatch.setattr(view_module, "_PER_TURN", 50)
    transcript = Transcript()
    transcript.begin_reply()
    grow(transcript, 0, STEPS)
    async with Reading(transcript).run_test(size=(40, 10)) as pilot:
        yield pilot


def app_of(pilot: Pilot[None]) -> Reading:
    assert isinstance(pilot.app, Reading)
    return pilot.app


async def whole(pilot: Pilot[None], width: int) -> list[str]:
    """Wait until the whole is laid out; its rows."""
    rows = expected(app_of(pilot).transcript, width)
    while app_of(pilot).view.virtual_size.height != len(rows):
        await pilot.pause(0.02)
    return rows


async def test_its_end_is_there_at_once_and_all_of_it_soon(pilot: Pilot[None]) -> None:
    app = app_of(pilot)
    width = app.view.scrollable_content_region.width
    assert app.shown() == expected(app.transcript, width)[-10:]
    rows = await whole(pilot, width)
    assert app.shown() == rows[-10:]
    app.view.action_scroll_home()
    await pilot.pause()
    assert app.shown() == rows[:10]


async def test_another_width_keeps_the_words_in_view(pilot: Pilot[None]) -> None:
    app = app_of(pilot)
    rows = await whole(pilot, app.view.scrollable_content_region.width)
    app.view.scroll_to(y=len(rows) // 2, animate=False, immediate=True)
    await pilot.pause()
    first = app.shown()[0].split()[0]
    await pilot.resize_terminal(60, 10)
    await pilot.pause()
    assert first in "\n".join(app.shown()[:3])
    await whole(pilot, app.view.scrollable_content_region.width)
    assert first in "\n".join(app.shown()[:3])


async def test_grows_while_it_is_laid_out(pilot: Pilot[None]) -> None:
    app = app_of(pilot)
    grow(app.transcript, STEPS, STEPS + 20)
    app.view.update()
    await pilot.pause()
    width = app.view.scrollable_content_region.width
    assert app.shown() == expected(app.transcript, width)[-10:]
    rows = await whole(pilot, width)
    assert app.shown() == rows[-10:]


async def test_the_beginning_can_be_read_before_all_is_laid_out(pilot: Pilot[None]) -> None:
    app = app_of(pilot)
    app.view.action_scroll_home()
    await pilot.pause()
    assert app.shown() == expected(app.transcript, app.view.scrollable_content_region.width)[:10]
