"""An engine whose replies are recorded as they are given."""

import contextlib
import datetime
import itertools
import os
import sys
from collections.abc import Callable, Generator
from typing import Concatenate, ParamSpec

from peagle_cli.engine.protocol import Command, Engine, EngineInfo, Request
from peagle_cli.recording import sessions
from peagle_cli.recording.format import SCHEMA, Header
from peagle_cli.recording.writer import Writer
from peagle_cli.trace.events import Event, Started

_P = ParamSpec("_P")


class RecordedEngine:
    """`engine`, with a recording in the sessions folder that begins with the first request that is not refused.

    What is asked of `engine` itself is not recorded.
    `on_trouble` hears in one sentence when recording fails; the engine goes on without. `continues` names the
    recording whose conversation is continued.
    """

    def __init__(self, engine: Engine, on_trouble: Callable[[str], None], continues: str | None = None) -> None:
        self.engine = engine
        self._on_trouble = on_trouble
        self._continues = continues
        self._writer: Writer | None = None
        self._over = False  # closed, or given up

    @property
    def recording(self) -> bool:
        """Whether replies are being recorded: not when that has failed."""
        return not self._over

    @property
    def info(self) -> EngineInfo:
        """What was opened."""
        return self.engine.info

    def run(self, request: Request) -> Generator[Event]:
        """Answer `request`, as `Engine.run` says."""
        with contextlib.closing(self.engine.run(request)) as events:
            first = next(events)  # raises what refuses the request
            if not isinstance(first, Started):  # the engine is gone: there is no reply to record
                yield first
                yield from events
                return
            self._attempt(_ask, request)
            try:
                for event in itertools.chain([first], events):
                    self._attempt(Writer.add, event)
                    yield event
            finally:
                self._attempt(Writer.end)

    def control(self, command: Command) -> None:
        """Obey `command`, as `Engine.control` says."""
        self.engine.control(command)

    def close(self) -> None:
        """Close the engine and the recording."""
        self._over = True
        self.engine.close()
        if self._writer is not None:
            self._writer.close()

    def _attempt(self, write: Callable[Concatenate[Writer, _P], None], *args: _P.args, **kwargs: _P.kwargs) -> None:
        """Write to the recording, which is begun if need be; the first failure ends it."""
        if self._over:
            return
        try:
            self._writer = self._writer or self._begin()
            write(self._writer, *args, **kwargs)
        except OSError as error:
            self._over = True
            self._on_trouble(f"This chat is no longer recorded: {error.strerror}.")

    def _begin(self) -> Writer:
        header = header_of(self.engine.info, _terminal_size(), self._continues)
        return Writer(sessions.new_path(header.created), header)


def header_of(info: EngineInfo, terminal: tuple[int, int] | None = None, continues: str | None = None) -> Header:
    """The header of a recording that begins now, of the engine that `info` describes."""
    return Header(
        schema=SCHEMA,
        created=datetime.datetime.now().astimezone(),
        engine=info.engine,
        model=info.model,
        drafters=info.drafters,
        max_depths=info.max_depths,
        context=info.context,
        machine=info.machine,
        versions=info.versions,
        terminal=terminal,
        continues=continues,
    )


def _ask(writer: Writer, request: Request) -> None:
    sessions.make_room(keep=writer.path)
    writer.ask(request.messages, [lane.name for lane in request.lanes], request.candidates)


def _terminal_size() -> tuple[int, int] | None:
    """Columns and rows; None without a terminal."""
    try:
        size = os.get_terminal_size(sys.__stdout__.fileno() if sys.__stdout__ else -1)
    except (OSError, ValueError):
        return None
    return size.columns, size.lines
