"""The chat screen, driven by keys: the tiny model answers, in this process or in one that is killed."""

import os
import signal
import threading
from collections.abc import Generator
from pathlib import Path

import pytest

from peagle_cli.engine.open import start_engine
from peagle_cli.engine.process import Opening as ProcessOpening
from peagle_cli.engine.protocol import Engine, EngineSpec, Opening, Request
from peagle_cli.engine.torch.engine import TorchEngine
from peagle_cli.errors import EXIT_INTERRUPTED, BadInputError, PeagleError
from peagle_cli.models.progress import OnProgress, Progress
from peagle_cli.trace.events import Event, Failed
from peagle_cli.tui import session
from peagle_cli.tui.app import ChatApp
from peagle_cli.tui.options import ChatOptions
from peagle_cli.tui.screens.chat import ChatScreen
from peagle_cli.tui.screens.help import HelpScreen
from peagle_cli.tui.session import Phase
from peagle_cli.tui.widgets.keyline import KeyLine
from peagle_cli.tui.widgets.prompt import Prompt
from peagle_cli.tui.widgets.status import StatusLine
from peagle_cli.tui.widgets.transcript import TranscriptView
from tests.tui.driving import Lent, Ready, chat


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
async def test_helps() -> None:
    async with chat(size=(120, 160)) as driver:
        await driver.ready()
        await driver.press("f1")
        assert isinstance(driver.app.screen, HelpScreen)
        await driver.until(lambda: driver.says("/depth N"))


@pytest.mark.usefixtures("ready")
async def test_every_key_can_be_bound_to_another() -> None:
    async with chat() as driver:
        bindings = [*ChatScreen.BINDINGS, *TranscriptView.BINDINGS, *Prompt.BINDINGS]
        ids = [getattr(binding, "id", None) for binding in bindings]
        assert None not in ids and len(set(ids)) == len(ids)
        assert driver.screen.query_one(KeyLine).display


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
        for _ in range(1000):
            if app.return_value is not None:
                break
            await pilot.pause(0.01)
    assert isinstance(app.return_value, BadInputError)


async def test_writing_is_possible_while_the_engine_loads(
    monkeypatch: pytest.MonkeyPatch, tiny_engine: TorchEngine
) -> None:
    class Slow(Ready):
        def wait(self, on_progress: OnProgress) -> Engine:
            on_progress(Progress("Downloading the model", 43_000_000, 93_000_000, "bytes"))
            sent.wait(30)
            raise PeagleError("No network.", "Connect, then try again.")

    sent = threading.Event()
    monkeypatch.setattr(session, "start_engine", lambda spec: Slow(tiny_engine))
    async with chat(max_tokens=4) as driver:
        await driver.until(lambda: driver.says("43 of 93 MB"))
        await driver.type("Early")
        await driver.press("enter")
        assert driver.says("asked when ready")
        sent.set()
        await driver.until(lambda: driver.says("No network."))
        assert driver.phase is Phase.BROKEN
        monkeypatch.setattr(session, "start_engine", lambda spec: Ready(tiny_engine))
        await driver.press("ctrl+r")
        await driver.until(lambda: driver.says("4 tokens"))


async def test_what_loads_in_the_midst_of_a_reply_is_told_until_it_goes_on(
    monkeypatch: pytest.MonkeyPatch, tiny_engine: TorchEngine
) -> None:
    class Loads(Lent):
        """Loads before it replies, as servers for another method do."""

        def __init__(self, engine: Engine, on_progress: OnProgress) -> None:
            super().__init__(engine)
            self._on_progress = on_progress

        def run(self, request: Request) -> Generator[Event]:
            self._on_progress(Progress("Starting vLLM (EAGLE-3): 5 s"))
            loaded.wait(30)
            return super().run(request)

    class Opens(Ready):
        def wait(self, on_progress: OnProgress) -> Engine:
            return Loads(tiny_engine, on_progress)

    loaded = threading.Event()
    monkeypatch.setattr(session, "start_engine", lambda spec: Opens(tiny_engine))
    async with chat(prompt="Hello", max_tokens=4) as driver:
        await driver.until(lambda: driver.says("Starting vLLM (EAGLE-3): 5 s"))
        assert driver.phase is Phase.REPLYING
        loaded.set()
        await driver.until(lambda: driver.says("4 tokens"))
        assert not driver.says("Starting vLLM")


async def test_a_killed_engine_leaves_a_usable_screen(
    tiny_spec: EngineSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    openings: list[ProcessOpening] = []
    specs: list[EngineSpec] = []

    def start(spec: EngineSpec) -> Opening:
        specs.append(spec)
        opening = start_engine(spec)
        assert isinstance(opening, ProcessOpening)
        openings.append(opening)
        return opening

    monkeypatch.setattr(session, "start_engine", start)
    monkeypatch.setenv("PEAGLE_LOG_DIR", str(tmp_path))
    async with chat(tiny_spec, prompt="Hello", max_tokens=4000) as driver:
        await driver.replying()
        await driver.press("f2")
        os.kill(openings[0]._child.pid, signal.SIGKILL)
        await driver.until(lambda: driver.phase is Phase.BROKEN)
        reply = driver.screen._talk.conversation.reply
        assert reply is not None and reply.text and isinstance(reply.outcome, Failed)
        await driver.until(lambda: driver.says("^r starts it again"))
        assert driver.says("killed")
        await driver.press("ctrl+r")
        await driver.ready()
        wanted = driver.screen._talk.conversation.wanted
        assert wanted and wanted.method != specs[0].method
        assert (specs[1].method, specs[1].depth) == (wanted.method, wanted.depth), "ready for what comes next"
        await driver.type("/retry")
        await driver.press("enter")
        await driver.replying()
        await driver.press("escape")
        await driver.ready()
        assert driver.screen.query_one(StatusLine).display
