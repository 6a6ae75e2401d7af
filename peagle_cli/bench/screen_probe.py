"""Runs a screen on this process's terminal, has it do things, and writes down how quick it was.

As a program: `screen_probe replay RECORDING RESULT`, or `screen_probe chat SPEC RESULT`, where SPEC is an `EngineSpec`
as JSON; RESULT is the file for the figures.
"""

import asyncio
import inspect
import math
import resource
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path, PurePath
from typing import Any

import msgspec
from textual.app import App
from textual.driver import Driver
from textual.screen import Screen

from peagle_cli.bench.screen_figures import ChatFigures, Playing, ReplayFigures
from peagle_cli.engine.protocol import EngineSpec, Message, Request
from peagle_cli.recording.format import Happened, encode
from peagle_cli.recording.recording import Recording, Run
from peagle_cli.trace.events import DraftBatch, Finished
from peagle_cli.trace.metrics import Metrics
from peagle_cli.tui.app import ChatApp, PeagleApp, ReplayApp
from peagle_cli.tui.conversation import CANDIDATES_SHOWN
from peagle_cli.tui.driver import LenientDriver
from peagle_cli.tui.options import ChatOptions
from peagle_cli.tui.screens.chat import ChatScreen
from peagle_cli.tui.screens.frames import FRAMES_PER_S
from peagle_cli.tui.screens.replay import ReplayScreen
from peagle_cli.tui.session import Phase
from peagle_cli.tui.talk import Talk
from peagle_cli.tui.widgets.prompt import Prompt
from peagle_cli.tui.widgets.transcript import TranscriptView

TOKENS = 200_000
TOKENS_PER_S = 5000.0
SEEKS = (1.0, 0.1, 0.5, 0.95, 0.75)
"""Shares of the whole replay that are jumped to, one after the other; from the last one it plays on."""

PLAYED_S = 6.0
IDLE_S = 20.0
REPLIES = 3
REPLY_TOKENS = 300

_SETTLE_S = 1.0  # until what was begun before has no more effect
_ASLEEP_S = 0.005  # between two turns of the task whose lateness is measured
_PROMPT = "Tell me how ships find their way at sea, and how they did in earlier centuries."


class CountingDriver(LenientDriver):
    """Notes when something was drawn, in seconds of the monotonic clock."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        self.drawn_s: list[float] = []
        super().__init__(*arguments, **settings)

    def write(self, data: str) -> None:
        """Write to the terminal."""
        self.drawn_s.append(time.monotonic())
        super().write(data)


_STYLES: list[str | PurePath] = [Path(inspect.getfile(PeagleApp)).parent / name for name in PeagleApp.CSS_PATH]
"""Textual would look for them beside this file."""


class Watch:
    """What the process does while an `App` with a `CountingDriver` runs."""

    def __init__(self, app: App[Any]) -> None:
        self._app = app

    async def playing(self, seconds: float) -> Playing:
        """Watch a screen that draws for so long."""
        driver = self._app._driver  # which Textual has no public way to ask for
        assert isinstance(driver, CountingDriver)
        driver.drawn_s.clear()
        lags: list[float] = []
        begun, cpu = time.monotonic(), time.process_time()
        while (now := time.monotonic()) < begun + seconds:
            await asyncio.sleep(_ASLEEP_S)
            lags.append(1e3 * max(0.0, time.monotonic() - now - _ASLEEP_S))
        spent = time.monotonic() - begun
        frames = len({int(at * FRAMES_PER_S) for at in driver.drawn_s})
        return Playing(
            frames_per_s=frames / spent,
            lag_p50_ms=statistics.median(lags),
            lag_p95_ms=statistics.quantiles(lags, n=20)[-1],
            cpu_ms_per_frame=1e3 * (time.process_time() - cpu) / max(frames, 1),
        )

    async def idle(self, seconds: float) -> float:
        """Percent of a core that the process needs while it has nothing to do."""
        await asyncio.sleep(_SETTLE_S)
        begun, cpu = time.monotonic(), time.process_time()
        await asyncio.sleep(seconds)
        return 100 * (time.process_time() - cpu) / (time.monotonic() - begun)

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until it does."""
        while not holds():
            await asyncio.sleep(_ASLEEP_S)


class ReplayProbe(ReplayApp):
    """Plays a long session, and jumps to and fro in it."""

    CSS_PATH = _STYLES

    def __init__(self, recording: Recording, result: Path) -> None:
        super().__init__(recording, 1.0, math.inf, None)
        self._result = result

    def get_driver_class(self) -> type[Driver]:
        """One that counts."""
        return CountingDriver

    def on_ready(self) -> None:
        """Begin."""
        self.run_worker(self._measure())

    async def _measure(self) -> None:
        screen, watch = self.screen, Watch(self)
        assert isinstance(screen, ReplayScreen)
        await asyncio.sleep(_SETTLE_S)
        beginning = await watch.playing(PLAYED_S)
        screen.action_play()
        await watch.until(lambda: screen.playback.survey.complete)  # it goes through all of it once, a little at a time
        sought = []
        for share in SEEKS:
            begun = time.monotonic()
            screen.action_go_to(share)
            await watch.until(lambda: not screen.seeking)
            sought.append(time.monotonic() - begun)
            await asyncio.sleep(_SETTLE_S)
        screen.action_play()
        await asyncio.sleep(_SETTLE_S)
        end = await watch.playing(PLAYED_S)
        view, begun = screen.query_one("#transcript", TranscriptView), time.monotonic()
        view.rejected = "none"
        await asyncio.sleep(0)
        relayout_s = time.monotonic() - begun
        screen.action_go_to(1.0)
        await watch.until(lambda: not screen.seeking and not screen.playing and view.laid_out)
        figures = ReplayFigures(
            tokens=TOKENS,
            tokens_per_s=TOKENS_PER_S,
            beginning=beginning,
            end=end,
            seek_s=max(sought),
            relayout_s=relayout_s,
            memory_mb=peak_mb(),
            idle_percent=await watch.idle(IDLE_S),
        )
        self._result.write_bytes(msgspec.json.encode(figures))
        self.exit(0)


class _Chat(ChatScreen):
    @property
    def talk(self) -> Talk:
        return self._talk


class ChatProbe(ChatApp):
    """Asks the same on the screen and past it, by turns."""

    CSS_PATH = _STYLES

    def __init__(self, options: ChatOptions, result: Path) -> None:
        super().__init__(options)
        self._chat = _Chat(options)
        self._result = result

    def get_driver_class(self) -> type[Driver]:
        """One that counts."""
        return CountingDriver

    def get_default_screen(self) -> Screen[None]:
        """The chat, whose conversation can be looked at."""
        return self._chat

    def on_ready(self) -> None:
        """Begin."""
        self.run_worker(self._measure())

    async def _measure(self) -> None:
        watch = Watch(self)
        await watch.until(lambda: self._chat.talk.phase is Phase.READY)
        await self._on_screen(watch)  # to warm up
        ratios = []
        for _ in range(REPLIES):
            shown = await self._on_screen(watch)
            ratios.append(shown / await asyncio.to_thread(self._headless))
        idle = await watch.idle(IDLE_S)
        self._ask()
        await watch.until(lambda: self._chat.talk.phase is Phase.REPLYING)
        self._chat.action_pause()
        figures = ChatFigures(statistics.median(ratios), idle, await watch.idle(IDLE_S))
        self._result.write_bytes(msgspec.json.encode(figures))
        self.exit(0)

    def _ask(self) -> None:
        self._chat.action_clear()
        self._chat.query_one(Prompt).post_message(Prompt.Sent(_PROMPT))

    async def _on_screen(self, watch: Watch) -> float:
        """Tokens per second of a reply that is shown as it comes."""
        self._ask()
        await watch.until(lambda: self._chat.talk.phase is Phase.REPLYING)
        await watch.until(lambda: self._chat.talk.phase is Phase.READY)
        reply = self._chat.talk.conversation.reply
        assert reply is not None and reply.metrics.tokens_per_second is not None
        return reply.metrics.tokens_per_second

    def _headless(self) -> float:
        """Tokens per second of the same reply that nobody sees."""
        talk = self._chat.talk
        engine, lane = talk.session.engine, talk.conversation.wanted
        assert engine is not None and lane is not None
        request = Request(
            (Message("user", _PROMPT),), (lane,), talk.conversation.options.sampling, REPLY_TOKENS, CANDIDATES_SHOWN
        )
        speed = Metrics(engine.run(request)).tokens_per_second
        assert speed is not None
        return speed


def lengthened(recording: Recording, tokens: int, tokens_per_s: float) -> Recording:
    """A session of one reply that says what the first reply of `recording` says again and again, at this speed."""
    short = recording.runs[0]
    (started,) = short.started.values()
    batches = [event for event in short if isinstance(event, DraftBatch) and not event.prefill]
    long = Run(short.asked)
    said = step = 0
    at_s = 0.0

    def add(happened: Happened) -> None:
        long.add(happened, encode(happened))

    add(Happened(0.0, started))
    while said < tokens:
        batch = batches[step % len(batches)]
        said, at_s = said + batch.emitted, said / tokens_per_s
        add(Happened(at_s, msgspec.structs.replace(batch, step=step, clock_s=at_s)))
        step += 1
    add(Happened(at_s, Finished(started.lane, "length")))
    long.whole = True
    return Recording(recording.path, recording.header, [long], torn=False)


def peak_mb() -> float:
    """The most memory that this process had so far, in MB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e6 if sys.platform == "darwin" else 1e3)


def main(what: str, argument: str, result: str) -> None:
    """Measure, and write the figures."""
    if what == "replay":
        recording = lengthened(Recording.load(Path(argument)), TOKENS, TOKENS_PER_S)
        ReplayProbe(recording, Path(result)).stay()
    else:
        spec = msgspec.json.decode(argument, type=EngineSpec)
        ChatProbe(ChatOptions(spec, max_tokens=REPLY_TOKENS, record=False), Path(result)).stay()


if __name__ == "__main__":
    main(*sys.argv[1:])
