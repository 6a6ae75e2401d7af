"""The timeline and the page of figures, on courses made to measure."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import ClassVar

import msgspec
import pytest
from textual.app import ComposeResult
from textual.pilot import Pilot
from textual.screen import Screen

from peagle_cli.errors import PeagleError
from peagle_cli.trace.course import Course
from peagle_cli.trace.events import DraftBatch, Event
from peagle_cli.trace.tally import Tally
from peagle_cli.tui import app
from peagle_cli.tui.app import PeagleApp
from peagle_cli.tui.screens.figures import FiguresScreen, Place, Subject
from peagle_cli.tui.widgets.course import CourseStrip
from tests.trace.batches import batch
from tests.trace.test_course import reply


class App(PeagleApp[int]):
    """Shows one screen, and keeps what a page ends with."""

    CSS_PATH: ClassVar = [str(Path(app.__file__).parent / sheet) for sheet in PeagleApp.CSS_PATH]

    def __init__(self, screen: Screen[None]) -> None:
        super().__init__(None)
        self._first = screen
        self.place: Place | None = None

    def get_default_screen(self) -> Screen[None]:
        return self._first

    def keep(self, place: Place | None) -> None:
        self.place = place


class Strip(Screen[None]):
    """A timeline alone."""

    def __init__(self, course: Course) -> None:
        super().__init__()
        self.course = course
        self.moved: list[range] = []

    def compose(self) -> ComposeResult:
        yield CourseStrip()

    def on_mount(self) -> None:
        self.query_one(CourseStrip).styles.height = 4
        self.query_one(CourseStrip).show_course(self.course)

    def on_course_strip_moved(self, message: CourseStrip.Moved) -> None:
        self.moved.append(message.batches)


def text(pilot: Pilot[int | PeagleError]) -> str:
    """All that is to be read."""
    return "\n".join(strip.text for strip in pilot.app.screen._compositor.render_strips())


def lines(pilot: Pilot[int | PeagleError]) -> Sequence[str]:
    return text(pilot).split("\n")


def steps(*accepted: int, depth: int = 7) -> list[DraftBatch]:
    return [batch(depth, n) for n in accepted]


async def test_a_column_is_as_high_as_drafts_were_accepted() -> None:
    prefill = msgspec.structs.replace(batch(0, prefill=3), depth=7)
    course = Course(reply(prefill, *steps(0, 7, 3)))
    async with App(Strip(course)).run_test(size=(40, 6)) as pilot:
        upper, lower, marks = lines(pilot)[:3]
        assert lower.startswith("·▁█▇")
        assert upper.startswith("  █ ")
        assert "▇=1" in lower
        assert marks.startswith("┃P-EAGLE")


async def test_changes_are_marked_with_what_they_changed_to() -> None:
    events: list[Event] = [
        *reply(*steps(*[1] * 12), *steps(*[1] * 12, depth=3), *[batch(3, 1, method="eagle3")] * 14),
        *reply(*[batch(0, method="none")] * 6),
    ]
    async with App(Strip(Course(events))).run_test(size=(80, 6)) as pilot:
        assert "".join(lines(pilot)[2].split()) == "┃P-EAGLE7╷3╷EAGLE-33┃plain"


async def test_says_how_many_steps_a_column_is() -> None:
    async with App(Strip(Course(reply(*steps(*[2] * 700))))).run_test(size=(94, 6)) as pilot:
        assert "= 9 steps" in text(pilot)
        await pilot.press("z")
        assert "= 1 step" in text(pilot)
        assert lines(pilot)[2].startswith("‹")


async def test_moves_by_columns_and_tells_about_their_steps() -> None:
    screen = Strip(Course(reply(*steps(*[2] * 700))))
    async with App(screen).run_test(size=(94, 6)) as pilot:
        await pilot.press("home", "right", "right")
        assert screen.moved[-1] == range(18, 27)
        assert "steps 18–26" in text(pilot)
        assert "3.00 tokens per step" in text(pilot)
        await pilot.press("end")
        assert screen.moved[-1] == range(693, 700)
        await pilot.click(CourseStrip, offset=(5, 1))
        assert screen.moved[-1] == range(45, 54)


async def test_numbers_steps_as_their_events_do() -> None:
    screen = Strip(Course([*reply(*steps(*[1] * 5)), *reply(*steps(*[1] * 5))]))
    async with App(screen).run_test(size=(94, 6)) as pilot:
        await pilot.press("home")
        assert "step 0 in reply 1" in text(pilot)
        await pilot.press("end")
        assert "step 4 in reply 2" in text(pilot)


async def test_counts_the_steps_of_a_column_over_several_replies() -> None:
    screen = Strip(Course([*reply(*steps(*[1] * 5)), *reply(*steps(*[1] * 695))]))
    async with App(screen).run_test(size=(94, 6)) as pilot:
        await pilot.press("home")
        assert "9 steps in replies 1–2" in text(pilot)


async def test_goes_from_change_to_change() -> None:
    screen = Strip(Course(reply(*steps(*[1] * 5), *steps(*[1] * 5, depth=3))))
    async with App(screen).run_test(size=(94, 6)) as pilot:
        await pilot.press("home", "ctrl+right")
        assert screen.moved[-1] == range(5, 6)
        await pilot.press("ctrl+left")
        assert screen.moved[-1] == range(1)


async def test_an_empty_course_bears_all_keys() -> None:
    async with App(Strip(Course())).run_test(size=(60, 6)) as pilot:
        await pilot.press("left", "right", "home", "end", "ctrl+left", "ctrl+right", "z")
        assert not text(pilot).strip()


@pytest.fixture(params=[(60, 20), (80, 24), (120, 36), (200, 60)])
async def page(request: pytest.FixtureRequest) -> AsyncIterator[Pilot[int | PeagleError]]:
    first = reply(batch(0, prefill=5), *steps(*[2, 0, 7, 1] * 10))
    second = reply(batch(0, prefill=5), *steps(*[3] * 5), *[batch(3, 1, method="eagle3")] * 5)
    whole, one = Tally([*first, *second]), Tally(second)
    subjects = [Subject("this reply", one, whole.metrics, len(first) - 1), Subject("the conversation", whole)]
    shown = App(Screen())
    async with shown.run_test(size=request.param) as pilot:
        shown.push_screen(FiguresScreen(lambda: subjects, lambda: False), shown.keep)
        await pilot.pause()
        await pilot.pause()
        yield pilot


async def test_the_page_has_all_figures_of_a_reply(page: Pilot[int | PeagleError]) -> None:
    seen = text(page)
    for _ in range(4):
        await page.press("pagedown")
        seen += text(page)
    assert "[this reply]" in seen
    assert "3.00 effective depth" in seen
    for plate in ("tokens/s, 8 steps", "effective depth, 8 steps", "accepted per draft", "accepted by position"):
        assert plate in seen
    assert "word" in seen
    assert "~50" in seen  # five of ten drafts accepted three


async def test_the_page_turns_to_the_conversation(page: Pilot[int | PeagleError]) -> None:
    await page.press("right_square_bracket")
    assert "[the conversation]" in text(page)
    assert "in reply 2" not in text(page)
    await page.press("end")
    assert "in reply 2" in text(page)


async def test_the_page_ends_with_the_step_that_is_to_be_shown(page: Pilot[int | PeagleError]) -> None:
    await page.press("home", "enter")
    assert isinstance(page.app, App)
    assert page.app.place == Place("this reply", 41)
