"""A recording in a few figures, computed from its events in one pass."""

import datetime
from pathlib import Path

import msgspec

from peagle_cli.recording.reader import Reader
from peagle_cli.recording.replies import replies
from peagle_cli.trace.events import Machine
from peagle_cli.trace.rounds import Setting


class Overview(msgspec.Struct, frozen=True):
    """What is said of a recording in a list.

    `settings` are the methods and depths that its replies began with, each once. `tokens` and `tokens_per_second`, the
    decoding speed, are those of all replies together. `prompt` is the first one. `complete` is False where the
    recording was broken off within a reply.
    """

    created: datetime.datetime
    model: str
    machine: Machine
    settings: tuple[Setting, ...]
    replies: int
    tokens: int
    tokens_per_second: float | None
    prompt: str
    complete: bool


def overview(path: Path) -> Overview:
    """Read the recording. Raises `BadInputError` as `Reader` does."""
    settings: dict[Setting, None] = {}
    prompt, complete = "", True
    count = tokens = 0
    decoded, seconds = 0.0, 0.0
    with Reader(path) as reader:
        for reply in replies(reader, texts=False):
            settings[reply.started.method, reply.started.depth] = None
            prompt = prompt or reply.started.prompt
            complete = reply.complete
            count += 1
            metrics = reply.metrics
            tokens += metrics.tokens
            if metrics.tokens_per_second is not None and metrics.time_to_first_token_s is not None:
                decoding_s = metrics.elapsed_s - metrics.time_to_first_token_s
                decoded += metrics.tokens_per_second * decoding_s
                seconds += decoding_s
        header = reader.header
    return Overview(
        created=header.created,
        model=header.model,
        machine=header.machine,
        settings=tuple(settings),
        replies=count,
        tokens=tokens,
        tokens_per_second=decoded / seconds if seconds else None,
        prompt=prompt,
        complete=complete,
    )
