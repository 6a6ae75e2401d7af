"""The target as a writer through vLLM, in a child process: the Python that has vLLM may be another than ours."""

import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from peagle_cli.engine.logs import log_says, new_log
from peagle_cli.engine.vllm import launch
from peagle_cli.engine.vllm.installation import Installation
from peagle_cli.errors import PeagleError
from peagle_cli.train import vllm_child
from peagle_cli.train.orders import CONTEXT, Order

_AT_ONCE = 128
_CACHE_GIB = "4"
"""Of a processor's memory, for keys and values: 128 conversations with the default target take less."""

_END_S = 10.0

_decoder: msgspec.json.Decoder[tuple[int, list[int]] | None] = msgspec.json.Decoder(tuple[int, list[int]] | None)


class VllmWriter:
    """vLLM's offline interface, which runs as many texts side by side as fit. `close` ends it."""

    parallel = 2 * _AT_ONCE

    def __init__(self, folder: Path, installation: Installation) -> None:
        self.name = f"vLLM {installation.version}"
        self._log = new_log()
        parameters = {
            "model": str(folder),
            "dtype": "bfloat16",
            "max_model_len": CONTEXT,
            "max_num_seqs": _AT_ONCE,
            "enforce_eager": installation.cpu,
        }
        command = [str(installation.python), "-P", vllm_child.__file__, msgspec.json.encode(parameters).decode()]
        with self._log.open("wb") as log:
            self._child = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=_environment(installation),
                start_new_session=True,  # Ctrl+C is for us: the child ends with its input
            )
        self._hear()

    def write(self, orders: Sequence[Order]) -> Iterator[tuple[int, list[int]]]:
        """As `Writer.write` says. Raises `PeagleError` when vLLM breaks off."""
        assert self._child.stdin is not None, "a pipe"
        try:
            self._child.stdin.write(msgspec.json.encode(list(orders)) + b"\n")
            self._child.stdin.flush()
        except OSError as error:
            raise self._gone() from error
        for _ in orders:
            told = self._hear()
            assert told is not None, "said once only"
            yield told

    def close(self) -> None:
        """End the child."""
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe is not None:
                pipe.close()
        try:
            self._child.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()

    def _hear(self) -> tuple[int, list[int]] | None:
        assert self._child.stdout is not None, "a pipe"
        line = self._child.stdout.readline()
        if not line:
            raise self._gone()
        return _decoder.decode(line)

    def _gone(self) -> PeagleError:
        self._child.wait()
        return PeagleError(f"vLLM ended with exit code {self._child.returncode}.", log_says(self._log))


def _environment(installation: Installation) -> dict[str, str]:
    """The child is one process, so that nothing outlives it; what a user sets wins."""
    ours = {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "HF_HUB_OFFLINE": "1"}
    cache = {"VLLM_CPU_KVCACHE_SPACE": _CACHE_GIB} if installation.cpu else {}
    return {**launch.defaults(installation), **cache, **os.environ, **ours}
