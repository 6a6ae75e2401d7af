"""A chat screen that runs, driven by keys: what it shows, and when it has got somewhere."""

import time
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import asynccontextmanager
from typing import Any

from textual.pilot import Pilot

from peagle_cli.engine.protocol import Engine, EngineSpec, Request
from peagle_cli.models.progress import OnProgress
from peagle_cli.trace.events import Event
from peagle_cli.tui.app import ChatApp
from peagle_cli.tui.model import Kind
from peagle_cli.tui.options import ChatOptions
from peagle_cli.tui.screens.chat import ChatScreen
from peagle_cli.tui.session import Phase
from peagle_cli.tui.widgets.prompt import Prompt
from peagle_cli.tui.widgets.transcript import TranscriptView

NO_SPEC = EngineSpec()


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
