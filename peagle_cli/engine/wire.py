"""What crosses the border between peagle and its engine process: one JSON object a line, its kind in `type`.

Requests are numbered, upwards; everything about a request carries its number, so that what is left over from one can
never be taken for another's.
"""

import msgspec

from peagle_cli.engine.protocol import Command, EngineInfo, EngineSpec, Request
from peagle_cli.models.progress import Progress
from peagle_cli.trace.events import Event

OPENING = 0
"""The number that stands for the opening where others have their request's."""


class Open(msgspec.Struct, frozen=True, tag=True):
    """Load this engine; answered by any number of `Progress`, then `EngineInfo`, `Refused` or `Broke`."""

    spec: EngineSpec

    @property
    def id(self) -> int:
        """As if it were a request."""
        return OPENING


class Run(msgspec.Struct, frozen=True, tag=True):
    """Answer this request; answered by any number of `Happened`, then `Ended`, `Refused` or `Broke`."""

    id: int
    request: Request


class Obey(msgspec.Struct, frozen=True, tag=True):
    """A command for the request `id`; without effect when that has ended."""

    id: int
    command: Command


class Happened(msgspec.Struct, frozen=True, tag=True):
    """One event of the request `id`."""

    id: int
    event: Event


class Ended(msgspec.Struct, frozen=True, tag=True):
    """The request `id` has no more events."""

    id: int


class Refused(msgspec.Struct, frozen=True, tag=True):
    """A `PeagleError`, taken apart. `id` is the request's or `OPENING`."""

    id: int
    message: str
    hint: str
    exit_code: int


class Broke(msgspec.Struct, frozen=True, tag=True):
    """An exception nobody foresaw: the traceback is in the log and the process ends. `id` as in `Refused`."""

    id: int
    message: str


ToEngine = Open | Run | Obey
FromEngine = Progress | EngineInfo | Happened | Ended | Refused | Broke

_encoder = msgspec.json.Encoder()
_to_engine: msgspec.json.Decoder[ToEngine] = msgspec.json.Decoder(ToEngine)
_from_engine: msgspec.json.Decoder[FromEngine] = msgspec.json.Decoder(FromEngine)


def encode(message: ToEngine | FromEngine) -> bytes:
    """A message as one line, newline included."""
    return _encoder.encode(message) + b"\n"


def decode_to_engine(line: bytes) -> ToEngine:
    """What peagle told the engine process."""
    return _to_engine.decode(line)


def decode_from_engine(line: bytes) -> FromEngine:
    """What the engine process told peagle."""
    return _from_engine.decode(line)
