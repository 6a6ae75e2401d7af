"""A recording in a few figures, computed from its events in one pass."""

import datetime
from pathlib import Path

import msgspec

from peagle_cli.recording.format import Asked, End, Happened
from peagle_cli.recording.reader import Reader
from peagle_cli.trace.events import Machine, Method, Started
from peagle_cli.trace.metrics import Metrics


class Overview(msgspec.Struct, frozen=True):
    """What is said of a recording in a list.

    `settings` are the methods and depths that its replies began with, each once. `tokens` and `tokens_per_second`, the
    decoding speed, are those of all replies together. `prompt` is the first one. `complete` is False where the
    recording was broken off within a reply.
    """

    created: datetime.datetime
    model: str
    machine: Machine
    settings: tuple[tuple[Method, int], ...]
    replies: int
    tokens: int
    tokens_per_second: float | None
    prompt: str
    complete: bool


def overview(path: Path) -> Overview:
    """Read the recording. Raises `BadInputError` as `Reader` does."""
    settings: dict[tuple[Method, int], None] = {}
    total = _Total()
    prompt, complete = "", True
    lanes: dict[str, Metrics] = {}
    with Reader(path) as reader:
        for line in reader:
            match line.entry:
                case Asked(messages=messages):
                    prompt = prompt or messages[-1].content
                    complete = False
                case Happened(event=Started() as started):
                    settings[started.method, started.depth] = None
                    lanes[started.lane] = Metrics()
                case Happened(event=event):
                    lanes[event.lane].add(event)
                case End():
                    total.add(lanes)
                    complete = True
        total.add(lanes)
        header = reader.header
    return Overview(
        created=header.created,
        model=header.model,
        machine=header.machine,
        settings=tuple(settings),
        replies=total.replies,
        tokens=total.tokens,
        tokens_per_second=total.decoded_tokens / total.decoding_s if total.decoding_s else None,
        prompt=prompt,
        complete=complete,
    )


class _Total:
    """Replies added up."""

    def __init__(self) -> None:
        self.replies = 0
        self.tokens = 0
        self.decoded_tokens = 0.0
        self.decoding_s = 0.0

    def add(self, lanes: dict[str, Metrics]) -> None:
        """Add the lanes' replies, and forget the lanes."""
        for metrics in lanes.values():
            self.replies += 1
            self.tokens += metrics.tokens
            if metrics.tokens_per_second is not None and metrics.time_to_first_token_s is not None:
                seconds = metrics.elapsed_s - metrics.time_to_first_token_s
                self.decoded_tokens += metrics.tokens_per_second * seconds
                self.decoding_s += seconds
        lanes.clear()
