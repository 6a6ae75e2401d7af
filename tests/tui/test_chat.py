"""The chat screen, driven by keys: the tiny model answers, in this process or in one that is killed."""

import os
import signal
import threading
import time
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from textual.color import Color
from textual.filter import NoColor
from textual.pilot import Pilot
from textual.widgets import Footer

from peagle_cli.engine.open import start_engine
from peagle_cli.engine.process import Opening
from peagle_cli.engine.protocol import Engine, EngineSpec, Request
from peagle_cli.engine.torch.engine import TorchEngine
from peagle_cli.errors import EXIT_INTERRUPTED, BadInputError, PeagleError
from peagle_cli.models.progress import OnProgress, Progress
from peagle_cli.trace.events import Event, Failed
from peagle_cli.tui import session
from peagle_cli.tui.app import ChatApp
from peagle_cli.tui.model import Kind
from peagle_cli.tui.options import ChatOptions
from peagle_cli.tui.screens.chat import ChatScreen
from peagle_cli.tui.screens.figures import FiguresScreen
from peagle_cli.tui.screens.help import HelpScreen
from peagle_cli.tui.session import Phase
from peagle_cli.tui.widgets.prompt import Prompt
from peagle_cli.tui.widgets.status import StatusLine
from peagle_cli.tui.widgets.transcript import TranscriptView

NO_SPEC = EngineSpec()
SIZES = [(60, 20), (80, 24), (120, 36), (300, 100)]


class Lent:
    """An engine that outlives the screens that use it, at a pace that a reader can follow."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.info = engine.info
        self.control = engine.control

    def run(self, request: Request) -> Generator[Event]:
        for event in self._engine.run(request):
            time.sleep(0.005)
            yield event

    def close(self) -> None:
        pass


class Ready:
    """An engine that has been opened before."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def wait(self, on_progress: OnProgress) -> Engine:
        return Lent(self._engine)

    def cancel(self) -> None:
        pass


@pytest.fixture(scope="module")
def engine(tiny_spec: EngineSpec) -> TorchEngine:
    return TorchEngine.open(tiny_spec)


@pytest.fixture
def ready(engine: TorchEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "start_engine", lambda spec: Ready(engine))


class Driver:
    """A chat that runs: its keys and what it shows."""

    def __init__(self, app: ChatApp, pilot: Pilot[Any]) -> None:
        self.app = app
        self.pilot = pilot

    @property
    def screen(self) -> ChatScreen:
        screen = self.app.screen_stack[0]
        assert isinstance(screen, ChatScreen)
        return screen

    @property
    def phase(self) -> Phase:
        return self.screen._talk.phase

    @property
    def prompt(self) -> Prompt:
        return self.screen.query_one(Prompt)

    @property
    def view(self) -> TranscriptView:
        return self.screen.query_one(TranscriptView)

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    async def type(self, text: str) -> None:
        await self.pilot.press(*("space" if char == " " else char for char in text))

    async def until(self, holds: Callable[[], bool]) -> None:
        for _ in range(1000):
            if holds():
                return
            await self.pilot.pause(0.01)
        raise AssertionError(f"never held; the screen says:\n{self.words()}")

    async def ready(self) -> None:
        await self.until(lambda: self.phase is Phase.READY)

    async def replying(self, steps: int = 2) -> None:
        await self.until(lambda: self.phase is Phase.REPLYING and self.steps >= steps)

    @property
    def steps(self) -> int:
        reply = self.screen._talk.conversation.reply
        return reply.metrics.steps if reply else 0

    def words(self) -> str:
        """Everything on the screen, line by line."""
        lines = self.app.screen._compositor.render_strips()
        return "\n".join("".join(segment.text for segment in strip) for strip in lines)

    def marks(self, text: str) -> bool:
        """Whether the transcript marks this change."""
        spans = (span.text for span in self.screen._talk.transcript.spans if span.kind is Kind.CHANGE)
        return any(text in span.replace("\N{NO-BREAK SPACE}", " ") for span in spans)

    def says(self, text: str) -> bool:
        return text in self.words()


@asynccontextmanager
async def chat(spec: EngineSpec = NO_SPEC, size: tuple[int, int] = (120, 36), **options: Any) -> AsyncIterator[Driver]:
    app = ChatApp(ChatOptions(spec, **options))
    async with app.run_test(size=size) as pilot:
        yield Driver(app, pilot)
        app.exit(0)


@pytest.mark.usefixtures("ready")
async def test_asks_the_first_prompt_by_itself_and_the_next_when_sent() -> None:
    async with chat(prompt="Hello there", max_tokens=8) as driver:
        await driver.ready()
        assert driver.says("Hello there")
        assert driver.says("8 tokens")
        await driver.type("And then?")
        await driver.press("ctrl+j")
        await driver.type("Why?")
        await driver.press("enter")
        await driver.until(lambda: len(driver.screen._talk.conversation._turns) == 3)
        await driver.ready()
        assert driver.prompt.text == ""
        assert driver.screen._talk.conversation._turns[-1].content == "And then?\nWhy?"


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
async def test_completes_commands_and_recalls_prompts() -> None:
    async with chat(prompt="First", max_tokens=4) as driver:
        await driver.ready()
        await driver.type("/de")
        await driver.press("tab")
        await driver.type("2")
        assert driver.prompt.text == "/depth 2"
        await driver.press("enter")
        await driver.pilot.pause()
        wanted = driver.screen._talk.conversation.wanted
        assert wanted is not None and wanted.depth == 2
        await driver.press("up", "up")
        assert driver.prompt.text == "First"
        await driver.press("down", "down")
        assert driver.prompt.text == ""
        await driver.type("Fi")
        await driver.press("up")
        assert driver.prompt.text == "First"
        await driver.press("down")
        assert driver.prompt.text == "Fi"


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


@pytest.mark.usefixtures("ready")
async def test_helps_and_lists_everything_in_the_palette() -> None:
    async with chat(size=(120, 100)) as driver:
        await driver.ready()
        await driver.press("f1")
        assert isinstance(driver.app.screen, HelpScreen)
        assert driver.says("/depth N")
        await driver.press("escape")
        titles = [command.title for command in driver.app.get_system_commands(cast(Any, driver.screen))]
        assert {"/depth 3", "/method eagle3", "/restart"} <= set(titles)


@pytest.mark.usefixtures("ready")
async def test_every_key_can_be_bound_to_another() -> None:
    async with chat() as driver:
        bindings = [*ChatScreen.BINDINGS, *TranscriptView.BINDINGS, *Prompt.BINDINGS]
        ids = [getattr(binding, "id", None) for binding in bindings]
        assert None not in ids and len(set(ids)) == len(ids)
        assert driver.screen.query_one(Footer).display


@pytest.mark.usefixtures("ready")
@pytest.mark.parametrize(
    ("keys", "code"),
    [(("ctrl+d",), 0), (("slash", *"exit", "enter"), 0), (("ctrl+c", "ctrl+c"), EXIT_INTERRUPTED)],
)
async def test_leaves(keys: tuple[str, ...], code: int) -> None:
    app = ChatApp(ChatOptions(EngineSpec()))
    async with app.run_test() as pilot:
        await pilot.press(*keys)
        await pilot.pause()
    assert app.return_value == code


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
async def test_what_cannot_be_asked_is_told_and_can_be_asked_otherwise() -> None:
    async with chat(prompt="far too long " * 3000, max_tokens=4) as driver:
        await driver.ready()
        await driver.until(lambda: driver.says("context"))
        await driver.type("short")
        await driver.press("enter")
        await driver.until(lambda: driver.says("4 tokens"))


@pytest.mark.usefixtures("ready")
async def test_options_that_no_engine_can_meet_end_the_screen() -> None:
    app = ChatApp(ChatOptions(EngineSpec(), depth=99))
    async with app.run_test() as pilot:
        await pilot.pause(0.3)
    assert isinstance(app.return_value, BadInputError)


async def test_writing_is_possible_while_the_engine_loads(monkeypatch: pytest.MonkeyPatch, engine: TorchEngine) -> None:
    class Slow(Ready):
        def wait(self, on_progress: OnProgress) -> Engine:
            on_progress(Progress("Downloading the model", 43_000_000, 93_000_000, "bytes"))
            sent.wait(30)
            raise PeagleError("No network.", "Connect, then try again.")

    sent = threading.Event()
    monkeypatch.setattr(session, "start_engine", lambda spec: Slow(engine))
    async with chat(max_tokens=4) as driver:
        await driver.until(lambda: driver.says("43 of 93 MB"))
        await driver.type("Early")
        await driver.press("enter")
        assert driver.says("asked when ready")
        sent.set()
        await driver.until(lambda: driver.says("No network."))
        assert driver.phase is Phase.BROKEN
        monkeypatch.setattr(session, "start_engine", lambda spec: Ready(engine))
        await driver.press("ctrl+r")
        await driver.until(lambda: driver.says("4 tokens"))


async def test_a_killed_engine_leaves_a_usable_screen(
    tiny_spec: EngineSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    openings: list[Opening] = []

    def start(spec: EngineSpec) -> Opening:
        openings.append(start_engine(spec))
        return openings[-1]

    monkeypatch.setattr(session, "start_engine", start)
    monkeypatch.setenv("PEAGLE_LOG_DIR", str(tmp_path))
    async with chat(tiny_spec, prompt="Hello", max_tokens=4000) as driver:
        await driver.replying()
        os.kill(openings[0]._child.pid, signal.SIGKILL)
        await driver.until(lambda: driver.phase is Phase.BROKEN)
        reply = driver.screen._talk.conversation.reply
        assert reply is not None and reply.text and isinstance(reply.outcome, Failed)
        assert driver.says("ctrl+r starts it again")
        assert driver.says("killed")
        await driver.press("ctrl+r")
        await driver.ready()
        await driver.type("/retry")
        await driver.press("enter")
        await driver.replying()
        await driver.press("escape")
        await driver.ready()
        assert driver.screen.query_one(StatusLine).display
