"""Every screen in every state, against how it looked before.

`pytest tests/tui/test_snapshots.py --snapshot-update` takes what is shown now for right; read the difference then.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Event as Flag
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode
from textual.pilot import Pilot

from peagle_cli.engine.contest import Contest, settings_for
from peagle_cli.engine.protocol import Engine, EngineInfo, EngineSpec, Request
from peagle_cli.errors import PeagleError
from peagle_cli.models.progress import OnProgress, Progress
from peagle_cli.prompts import Prompt
from peagle_cli.trace.events import Sampling
from peagle_cli.tui import session
from peagle_cli.tui.app import ChatApp, RaceApp, ReplayApp
from peagle_cli.tui.lesson import Lesson
from peagle_cli.tui.options import ChatOptions
from peagle_cli.tui.race import Stage
from peagle_cli.tui.screens.chat import ChatScreen
from peagle_cli.tui.screens.frames import FRAMES_PER_PLOT, FRAMES_PER_S
from peagle_cli.tui.screens.race import RaceScreen
from peagle_cli.tui.screens.replay import ReplayScreen
from peagle_cli.tui.session import Phase
from peagle_cli.tui.tour import pages
from peagle_cli.tui.widgets import status
from tests.tui.picture import strips_of, styles_of, words_of
from tests.tui.scripted import CHAT, PROMPT, RACE, Scripted, recording

LARGE, MIDDLE, SMALL = (120, 36), (80, 24), (60, 20)
FIGURES_S = 1.5 * FRAMES_PER_PLOT / FRAMES_PER_S  # figures and plots of what goes on are drawn at least so often
pytestmark = pytest.mark.usefixtures("plain_surroundings")

Shown = Callable[..., Awaitable[None]]


class Text(SingleFileSnapshotExtension):
    """A file of text for each state."""

    _write_mode = WriteMode.TEXT
    file_extension = "txt"


class Opening:
    """An engine that opens at once, or does not; without one, it loads for ever."""

    def __init__(self, opened: Engine | PeagleError | None) -> None:
        self._opened = opened
        self._cancelled = Flag()

    def wait(self, on_progress: OnProgress) -> Engine:
        if self._opened is None:
            on_progress(Progress("fetching the target", 41_000_000, 93_000_000, "bytes"))
            self._cancelled.wait()
            raise PeagleError("It was cancelled.")
        if isinstance(self._opened, PeagleError):
            raise self._opened
        return self._opened

    def cancel(self) -> None:
        self._cancelled.set()


@pytest.fixture
def plain_surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings and no themes of the user's own, a terminal with all colours, and notices that stay."""
    monkeypatch.setattr(status, "NOTICE_S", 3600.0)
    monkeypatch.setenv("PEAGLE_CONFIG_DIR", str(tmp_path))
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.delenv("NO_COLOR", raising=False)


@pytest.fixture
def shows(snapshot: SnapshotAssertion) -> Shown:
    """Hold what is shown against the snapshot, in all sizes and with its styles where it is a `whole` screen; `live`
    where something goes on meanwhile."""

    async def hold(pilot: Pilot[Any], whole: bool = True, live: bool = False) -> None:
        pictures = []
        for size in (LARGE, MIDDLE, SMALL) if whole else (MIDDLE, SMALL):
            await pilot.resize_terminal(*size)
            strips = await settled(pilot, live)
            styles = f"styles\n{styles_of(strips)}" if whole and size == MIDDLE else ""
            pictures.append(f"{size[0]}x{size[1]}\n{words_of(strips)}{styles}")
        assert "\n".join(pictures) == snapshot.use_extension(Text)

    return hold


async def settled(pilot: Pilot[Any], live: bool) -> list[Any]:
    """The screen once nothing moves any more."""
    if live:
        await pilot.pause(FIGURES_S)
    before = None
    while before != (now := strips_of(pilot.app)):
        before = now
        await pilot.pause(0.03)
    return now


async def until(pilot: Pilot[Any], holds: Callable[[], bool]) -> None:
    for _ in range(1000):
        if holds():
            return
        await pilot.pause(0.01)
    raise AssertionError(f"never held; the screen says:\n{words_of(strips_of(pilot.app))}")


@asynccontextmanager
async def chat(
    monkeypatch: pytest.MonkeyPatch, opened: Engine | PeagleError | None, **options: Any
) -> AsyncIterator[tuple[Pilot[Any], ChatScreen]]:
    monkeypatch.setattr(session, "start_engine", lambda spec: Opening(opened))
    app = ChatApp(ChatOptions(EngineSpec(), **options))
    async with app.run_test(size=LARGE) as pilot:
        screen = app.screen
        assert isinstance(screen, ChatScreen)
        yield pilot, screen
        app.exit(0)


@asynccontextmanager
async def answered(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Pilot[Any], ChatScreen]]:
    async with chat(monkeypatch, Scripted(shallower_from=9), prompt=PROMPT) as (pilot, screen):
        await until(pilot, lambda: screen._talk.phase is Phase.READY and bool(screen._talk.conversation.exchanges))
        yield pilot, screen


@pytest.mark.parametrize(
    ("opened", "phase"),
    [
        pytest.param(None, Phase.LOADING, id="loading"),
        pytest.param(Scripted(), Phase.READY, id="empty"),
        pytest.param(PeagleError("The engine did not start.", "Its log says more."), Phase.BROKEN, id="no engine"),
    ],
)
async def test_chat_before_a_prompt(
    monkeypatch: pytest.MonkeyPatch, shows: Shown, opened: Engine | PeagleError | None, phase: Phase
) -> None:
    async with chat(monkeypatch, opened) as (pilot, screen):
        await until(
            pilot, lambda: screen._talk.phase is phase and (phase is not Phase.LOADING or bool(screen._talk.loading))
        )
        await shows(pilot, whole=False)


async def replying(pilot: Pilot[Any], screen: ChatScreen, tokens: int) -> None:
    def told() -> bool:
        reply = screen._talk.conversation.reply
        return reply is not None and reply.metrics.tokens >= tokens

    await until(pilot, told)


async def test_chat_streaming(monkeypatch: pytest.MonkeyPatch, shows: Shown) -> None:
    async with chat(monkeypatch, Scripted(shallower_from=9, hold_at=70), prompt=PROMPT) as (pilot, screen):
        await replying(pilot, screen, 70)
        await shows(pilot, live=True)


async def test_chat_paused_and_inspected(monkeypatch: pytest.MonkeyPatch, shows: Shown) -> None:
    async with chat(monkeypatch, Scripted(shallower_from=9, hold_at=70), prompt=PROMPT) as (pilot, screen):
        await replying(pilot, screen, 70)
        await pilot.press("space", "i")
        await shows(pilot, live=True)


async def test_chat_failed(monkeypatch: pytest.MonkeyPatch, shows: Shown) -> None:
    async with chat(monkeypatch, Scripted(fail_at=40), prompt=PROMPT) as (pilot, screen):
        await until(pilot, lambda: screen._talk.phase is Phase.BROKEN)
        await shows(pilot, whole=False)


@pytest.mark.parametrize(
    ("keys", "whole"),
    [
        pytest.param((), True, id="answer"),
        pytest.param(("f10",), True, id="figures"),
        pytest.param(("tab", "v"), True, id="markdown"),
        pytest.param(("shift+tab", "home", "right", "right"), False, id="timeline"),
        pytest.param(("f9",), False, id="rejected"),
        pytest.param(("ctrl+f", *"merge"), False, id="search"),
        pytest.param(("tab", "c"), False, id="copy"),
        pytest.param(("/",), False, id="commands"),
        pytest.param(("/", *"theme", "space"), False, id="arguments"),
        pytest.param(("f1",), False, id="help"),
        pytest.param(("f1", "end"), False, id="help-end"),
        pytest.param(("ctrl+p",), False, id="palette"),
        pytest.param(("ctrl+t",), False, id="themes"),
        pytest.param(("f1", "t"), False, id="tour"),
    ],
)
async def test_chat_answered(monkeypatch: pytest.MonkeyPatch, shows: Shown, keys: tuple[str, ...], whole: bool) -> None:
    async with answered(monkeypatch) as (pilot, _):
        for key in keys:
            await pilot.press("slash" if key == "/" else key)
        if keys == ("ctrl+p",):  # it gathers what it lists
            await until(pilot, lambda: "/inspect" in words_of(strips_of(pilot.app)))
        await shows(pilot, whole)


def test_tour(snapshot: SnapshotAssertion) -> None:
    lesson = Lesson("this session", Scripted(shallower_from=9).run(CHAT))
    shown = [
        f"{page.title}\n" + "".join("".join(text for text, _ in line).rstrip() + "\n" for line in page.lines)
        for page in pages(lesson, 56, str)
    ]
    assert "\n".join(shown) == snapshot.use_extension(Text)


@asynccontextmanager
async def race(monkeypatch: pytest.MonkeyPatch, engine: Scripted) -> AsyncIterator[tuple[Pilot[Any], RaceScreen]]:
    monkeypatch.setattr(session, "start_engine", lambda spec: Opening(engine))

    def contest(info: EngineInfo) -> Contest:
        settings = settings_for(info.drafters, (), (3, 7), baseline=True)
        return Contest(tuple(s for s in settings if s != ("eagle3", 7)), (Prompt((PROMPT,)),), 1, Sampling(), 100)

    app = RaceApp(EngineSpec(), contest, None, record=False)
    async with app.run_test(size=LARGE) as pilot:
        screen = app.screen
        assert isinstance(screen, RaceScreen)
        yield pilot, screen
        app.exit(None)


async def test_race_running(monkeypatch: pytest.MonkeyPatch, shows: Shown) -> None:
    def far(screen: RaceScreen) -> bool:
        return screen._race is not None and any(r.reply.metrics.tokens >= 60 for r in screen._race.runners)

    async with race(monkeypatch, Scripted(hold_at=60)) as (pilot, screen):
        await until(pilot, lambda: far(screen))
        await shows(pilot, live=True)


@pytest.mark.parametrize("keys", [pytest.param((), id="report"), pytest.param(("i",), id="inspected")])
async def test_race_over(monkeypatch: pytest.MonkeyPatch, shows: Shown, keys: tuple[str, ...]) -> None:
    async with race(monkeypatch, Scripted()) as (pilot, screen):
        await until(pilot, lambda: screen._race is not None and screen._race.stage is Stage.DONE)
        await pilot.press(*keys)
        await shows(pilot)


@pytest.mark.parametrize(
    ("requests", "keys", "whole"),
    [
        pytest.param((CHAT,), (), True, id="end"),
        pytest.param((CHAT, RACE), (), True, id="race"),
        pytest.param((CHAT,), ("t", "home", "right"), False, id="timeline"),
        pytest.param((CHAT,), ("f1",), False, id="help"),
    ],
)
async def test_replay(
    tmp_path: Path, shows: Shown, requests: tuple[Request, ...], keys: tuple[str, ...], whole: bool
) -> None:
    app = ReplayApp(recording(tmp_path / "one.peagle.jsonl", *requests), 1.0, 1.0, None)
    async with app.run_test(size=LARGE) as pilot:
        screen = app.screen
        assert isinstance(screen, ReplayScreen)
        screen.seek(screen.playback.length)
        await until(pilot, lambda: not screen.seeking and screen.playback.survey.complete)
        await pilot.press(*keys)
        await shows(pilot, whole)


async def test_demos(shows: Shown) -> None:
    async with ReplayApp(None, 1.0, 1.0, None).run_test(size=LARGE) as pilot:
        await shows(pilot, whole=False)
