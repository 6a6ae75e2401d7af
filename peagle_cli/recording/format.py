"""What a recording consists of: JSON objects, one a line, their kind in `record`; docs/recording-format.md has it all.

First the header; then, for every request of the session, the request, its events as they happened, and an end with
the figures of its lanes. A request that has no end was broken off, and nothing follows it.
"""

import datetime
from typing import Any

import msgspec

from peagle_cli.trace.events import Event, Machine, Message, Method
from peagle_cli.wording import counted

SCHEMA = 1
SUFFIX = ".peagle.jsonl"
MAX_LINE_BYTES = 8 << 20
"""No line is longer: it has room for a context of a million tokens."""


class Header(msgspec.Struct, frozen=True, omit_defaults=True, tag="header", tag_field="record"):
    """When, by what and on what it was recorded; the fields from `engine` to `versions` are those of `EngineInfo`.

    `terminal` is its size in columns and rows, None where there was none. `continues` names the recording whose
    conversation this one goes on with; the first request holds all of that conversation.
    """

    schema: int
    created: datetime.datetime
    engine: str
    model: str
    drafters: dict[Method, str]
    max_depths: dict[Method, int]
    context: int
    machine: Machine
    versions: dict[str, str]
    terminal: tuple[int, int] | None = None
    continues: str | None = None

    @property
    def about(self) -> str:
        """What was recorded, on what and when, in one line; not yet safe to show."""
        machine = self.machine
        where = f"{machine.name} ({machine.device}, {machine.precision}, {counted(machine.threads, 'thread')})"
        when = f"{self.created.astimezone(datetime.UTC):%Y-%m-%d %H:%M} UTC"
        return f"{self.model} · {self.engine} on {where} · recorded {when}"


class Asked(msgspec.Struct, frozen=True, omit_defaults=True, tag="request", tag_field="record"):
    """A request begins: the conversation to continue, the names of the lanes that do, and how many candidates were
    asked for. The rest of what was asked for stands in each lane's `Started`.

    `at_s`, here as in all records, is the wall clock's seconds since the header was made.
    """

    at_s: float
    messages: tuple[Message, ...]
    lanes: tuple[str, ...]
    candidates: int = 0


class Happened(msgspec.Struct, frozen=True, tag="event", tag_field="record"):
    """An event of the request."""

    at_s: float
    event: Event


class End(msgspec.Struct, frozen=True, tag="end", tag_field="record"):
    """The request is over. `metrics` has the figures of each lane that started: the fields of `Summary`, as they were
    when it was written, so that later versions may add to them."""

    at_s: float
    metrics: dict[str, dict[str, Any]]


Entry = Asked | Happened | End
Record = Header | Entry

_encoder = msgspec.json.Encoder()
header_decoder: msgspec.json.Decoder[Header] = msgspec.json.Decoder(Header)
entry_decoder: msgspec.json.Decoder[Entry] = msgspec.json.Decoder(Entry)


def encode(record: Record) -> bytes:
    """A record as one line, newline included."""
    return _encoder.encode(record) + b"\n"
