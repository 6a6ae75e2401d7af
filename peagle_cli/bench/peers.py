"""Other programs beside ours, each in a process of its own (`peer.py`)."""

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from peagle_cli.engine.lanes import PUBLISHED_DEPTHS
from peagle_cli.engine.logs import last_lines, new_log
from peagle_cli.engine.vllm.launch import speculative_config
from peagle_cli.engine.vllm.preflight import Drafter
from peagle_cli.errors import PeagleError
from peagle_cli.models.checkpoint import drafter_method
from peagle_cli.trace.events import Method

SCRIPT = Path(__file__).with_name("peer.py")

_ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_USE_V2_MODEL_RUNNER": "0",  # P-EAGLE runs on the first one only
}
_PATIENCE_S = 15.0


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
    """How many tokens a reply had, and how many seconds it took."""

    tokens: int
    seconds: float


class Peer:
    """A peer that has loaded its model."""

    def __init__(self, lane: Lane, process: "subprocess.Popen[bytes]", log: Path, loaded: _Loaded) -> None:
        self.lane = lane
        self.version = loaded.version
        self.precision = loaded.precision
        self._process = process
        self._log = log

    def reply(self, ids: Sequence[int], tokens: int) -> Reply:
        """Continue the prompt `ids` by up to that many tokens. Raises `PeagleError` when the peer ends instead."""
        stdin = self._process.stdin
        assert stdin is not None
        try:
            stdin.write(json.dumps({"ids": list(ids), "tokens": tokens}).encode() + b"\n")
            stdin.flush()
        except BrokenPipeError:
            raise _gone(self._process, self.lane.order.peer, self._log) from None
        return msgspec.json.decode(_line(self._process, self.lane.order.peer, self._log), type=Reply)

    def close(self) -> None:
        """End it."""
        _end(self._process)


def start(lane: Lane, pythons: Sequence[Path]) -> Peer | None:
    """The peer in the first of `pythons` that has it; None where none has. Raises `PeagleError` when it breaks."""
    for python in pythons:
        log = new_log()
        with log.open("ab") as errors:
            process = subprocess.Popen(
                [str(python), "-P", str(SCRIPT), msgspec.json.encode(lane.order).decode()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
                env={**_ENVIRONMENT, **os.environ},
            )
        try:
            loaded = msgspec.json.decode(_line(process, lane.order.peer, log), type=_Loaded)
        except BaseException:
            _end(process)
            raise
        if not loaded.missing:
            return Peer(lane, process, log, loaded)
        _end(process)
    return None


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


def _line(process: "subprocess.Popen[bytes]", peer: str, log: Path) -> bytes:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line.endswith(b"\n"):
        raise _gone(process, peer, log)
    return line


def _gone(process: "subprocess.Popen[bytes]", peer: str, log: Path) -> PeagleError:
    said = last_lines(log)
    code = process.wait(_PATIENCE_S)
    why = said[-1] if said else "it said nothing"
    if code < 0:  # as of a build for another processor, which dies of an illegal instruction
        why = f"killed by {signal.Signals(-code).name}"
    return PeagleError(f"{peer} ended before it answered: {why}", f"Its log is {log}")


def _end(process: "subprocess.Popen[bytes]") -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe:
            pipe.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_PATIENCE_S)  # without input it ends, and takes along what it started
        return
    if hasattr(os, "killpg"):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()
