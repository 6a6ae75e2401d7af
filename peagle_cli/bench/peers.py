"""Other programs beside ours, each in a process of its own (`peer.py`)."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from peagle_cli.engine.lanes import PUBLISHED_DEPTHS
from peagle_cli.engine.program import Program
from peagle_cli.engine.vllm.launch import speculative_config
from peagle_cli.engine.vllm.preflight import Drafter
from peagle_cli.errors import PeagleError
from peagle_cli.models.checkpoint import drafter_method
from peagle_cli.text import printable
from peagle_cli.trace.events import Method

SCRIPT = Path(__file__).with_name("peer.py")

_Answer = TypeVar("_Answer")

_ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_USE_V2_MODEL_RUNNER": "0",  # P-EAGLE runs on the first one only
}
LOAD_LIMIT_S = 300.0
REPLY_LIMIT_S = 180.0
"""How long a peer may take to load its model, and to reply, before it counts as broken."""


class Order(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a peer is to load; `speculation` is vLLM's configuration."""

    peer: str
    folder: str
    threads: int
    context: int
    gguf: str | None = None
    speculation: dict[str, object] | None = None


class Lane(msgspec.Struct, frozen=True):
    """A peer to measure, and how it drafts."""

    order: Order
    method: Method = "none"
    depth: int = 0


class _Loaded(msgspec.Struct, frozen=True):
    version: str = ""
    precision: str = ""
    missing: bool = False


class Reply(msgspec.Struct, frozen=True):
    """The tokens of a reply, and how many seconds it took."""

    ids: tuple[int, ...]
    seconds: float


class Peer:
    """A peer that has loaded its model."""

    def __init__(self, lane: Lane, program: Program, loaded: _Loaded) -> None:
        self.lane = lane
        self.version = loaded.version
        self.precision = loaded.precision
        self._program = program

    def reply(self, ids: Sequence[int], tokens: int, limit_s: float = REPLY_LIMIT_S) -> Reply:
        """Continue the prompt `ids` by up to that many tokens. Raises `PeagleError` when the peer ends instead, takes
        longer than `limit_s`, or says what is no reply."""
        self._program.say({"ids": list(ids), "tokens": tokens})
        reply = _told(self._program, Reply, limit_s)
        if not (0 < len(reply.ids) <= tokens and reply.seconds > 0):
            raise PeagleError(
                f"{self._program.name} replied with {len(reply.ids)} tokens in {reply.seconds:g} s.",
                f"Up to {tokens} were asked for.",
            )
        return reply

    def close(self) -> None:
        """End it."""
        self._program.close()


def start(lane: Lane, pythons: Sequence[Path], limit_s: float = LOAD_LIMIT_S) -> Peer | None:
    """The peer in the first of `pythons` that runs it; None where it is installed in none. Raises `PeagleError` where
    it is installed and does not run: it ends, fails to load, or has not loaded after `limit_s`."""
    failure: PeagleError | None = None
    for python in pythons:
        try:
            peer = _load(lane, python, limit_s)
        except PeagleError as error:
            failure = failure or error
            continue
        if peer:
            return peer
    if failure:
        raise failure
    return None


def _load(lane: Lane, python: Path, limit_s: float) -> Peer | None:
    command = [str(python), "-P", str(SCRIPT), msgspec.json.encode(lane.order).decode()]
    program = Program(lane.order.peer, command, {**_ENVIRONMENT, **os.environ})
    try:
        loaded = _told(program, _Loaded, limit_s)
    except BaseException:
        program.close()
        raise
    if loaded.missing:
        program.close()
        return None
    return Peer(lane, program, loaded)


def lanes(folder: Path, gguf: Path | None, threads: int, context: int, drafters: Sequence[Path]) -> Iterator[Lane]:
    """The programs that run the model in `folder`, whose GGUF file is `gguf`: plain, and vLLM with each of `drafters`
    at its published depth."""
    base = Order("transformers", str(folder), threads, context)
    if gguf:
        yield Lane(msgspec.structs.replace(base, peer="llama.cpp", gguf=str(gguf)))
    yield Lane(base)
    vllm = msgspec.structs.replace(base, peer="vLLM")
    yield Lane(vllm)
    for drafter in drafters:
        method = drafter_method(drafter)
        depth = PUBLISHED_DEPTHS[method]
        speculation = speculative_config(Drafter(method, drafter, None), depth, 1)
        yield Lane(msgspec.structs.replace(vllm, speculation=speculation), method, depth)


def _told(program: Program, kind: type[_Answer], limit_s: float) -> _Answer:
    """The program's next line, which is to be of that kind."""
    line = program.hear(limit_s)
    try:
        return msgspec.json.decode(line, type=kind)
    except msgspec.DecodeError:
        said = printable(line.decode(errors="replace")).strip()
        raise PeagleError(
            f"{program.name} said what is no answer: {said[:80]!r}", "Its program may be broken."
        ) from None
