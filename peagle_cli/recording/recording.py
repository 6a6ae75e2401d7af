"""A whole recording at hand, with random access to its events: for replaying, stepping and exporting."""

from array import array
from collections.abc import Iterator
from pathlib import Path

from peagle_cli.errors import BadInputError
from peagle_cli.recording.format import Asked, End, Happened, Header, entry_decoder
from peagle_cli.recording.lines import PackedLines
from peagle_cli.recording.reader import Reader
from peagle_cli.trace.events import DraftBatch, Event, Message, Started

MAX_LOADED_BYTES = 1 << 30
"""Longer recordings, unzipped, are not loaded; `Reader` can still stream them."""


MAX_SCREEN_EVENTS = 250_000
"""What the screen still moves through smoothly."""

MAX_PAGE_EVENTS = 50_000
"""What a browser still moves through smoothly."""


class Run:
    """One request and its events, which are kept as they were read until they are looked at.

    `times` are the events' seconds on the wall clock since the recording began. `started` has the beginning of every
    lane that began. `whole` is False where the recording was broken off.
    """

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self.started: dict[str, Started] = {}
        self.times = array("d")
        self.whole = False
        self._lines = PackedLines()

    def __len__(self) -> int:
        return len(self._lines)

    def __getitem__(self, index: int) -> Event:
        happened = entry_decoder.decode(self._lines[index])
        assert isinstance(happened, Happened)
        return happened.event

    def __iter__(self) -> Iterator[Event]:
        return (self[index] for index in range(len(self)))

    def add(self, happened: Happened, line: bytes) -> None:
        """Take the next event, and the line it stands in."""
        if isinstance(happened.event, Started):
            self.started[happened.event.lane] = happened.event
        self.times.append(happened.at_s)
        self._lines.append(line)


class Recording:
    """A recording that has been read to its end and checked. `torn` says that its last line was cut off."""

    def __init__(self, path: Path, header: Header, runs: list[Run], torn: bool) -> None:
        self.path = path
        self.header = header
        self.runs = runs
        self.torn = torn

    @classmethod
    def load(cls, path: Path) -> "Recording":
        """Read the recording. Raises `BadInputError` as `Reader` does, and for one too long to be held in memory."""
        size = 0
        runs: list[Run] = []
        with Reader(path) as reader:
            for line in reader:
                match line.entry:
                    case Asked():
                        runs.append(Run(line.entry))
                    case Happened():
                        runs[-1].add(line.entry, line.raw)
                    case End():
                        runs[-1].whole = True
                size += len(line.raw)
                if size > MAX_LOADED_BYTES:
                    raise BadInputError(
                        f"{path} holds more than the {MAX_LOADED_BYTES >> 20} MiB that can be shown.",
                        "Export it as csv or json instead.",
                    )
            return cls(path, reader.header, runs, reader.torn)


def load_to_show(path: Path, most: int = MAX_SCREEN_EVENTS) -> Recording:
    """Load a recording to be shown. Raises `BadInputError` as `Recording.load`, and for more events than `most`."""
    recording = Recording.load(path)
    events = sum(map(len, recording.runs))
    if events > most:
        raise BadInputError(
            f"{path} has {events} events, and no more than {most} can be shown.",
            "Replay it with --plain, or export it as csv or json.",
        )
    return recording


def conversation(path: Path) -> tuple[Message, ...]:
    """The conversation that a recording ends with: the messages of its last request in one lane, and the reply to them.

    Races are no part of it, and a prompt that got no word in reply is left out. Raises `BadInputError` as `Reader`
    does, and for a recording of races alone.
    """
    messages: tuple[Message, ...] | None = None
    reply, racing = "", False
    with Reader(path) as reader:
        for line in reader:
            match line.entry:
                case Asked(lanes=lanes):
                    racing = len(lanes) > 1
                    messages, reply = (messages, reply) if racing else (line.entry.messages, "")
                case Happened(event=DraftBatch() as batch) if not racing:
                    reply += batch.text
    if messages is None:
        raise BadInputError(f"{path} has no conversation that could be continued.", "It is the recording of a race.")
    return (*messages, Message("assistant", reply)) if reply else messages[:-1]
