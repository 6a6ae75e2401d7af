"""The target as a writer through vLLM, in a child process: the Python that has vLLM may be another than ours."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from peagle_cli.engine.program import Program
from peagle_cli.engine.vllm import launch
from peagle_cli.engine.vllm.installation import Installation
from peagle_cli.train import vllm_child
from peagle_cli.train.orders import CONTEXT, Order

_AT_ONCE = 128
_CACHE_GIB = "4"
"""Of a processor's memory, for keys and values: 128 conversations with the default target take less."""

_decoder: msgspec.json.Decoder[tuple[int, list[int]] | None] = msgspec.json.Decoder(tuple[int, list[int]] | None)


class VllmWriter:
    """vLLM's offline interface, which runs as many texts side by side as fit. `close` ends it."""

    parallel = 2 * _AT_ONCE

    def __init__(self, folder: Path, installation: Installation) -> None:
        self.name = f"vLLM {installation.version}"
        parameters = {
            "model": str(folder),
            "dtype": "bfloat16",
            "max_model_len": CONTEXT,
            "max_num_seqs": _AT_ONCE,
            "enforce_eager": installation.cpu,
            # vLLM 0.32 ends on a CPU when a seeded request's prompt falls into two steps: it takes back what it
            # sampled by a generator's offset, which a CPU's generator has not.
            "enable_chunked_prefill": not installation.cpu,
        }
        command = [str(installation.python), "-P", vllm_child.__file__, msgspec.json.encode(parameters).decode()]
        self._program = Program("vLLM", command, _environment(installation))
        try:
            self._hear()
        except BaseException:
            self.close()
            raise

    def write(self, orders: Sequence[Order]) -> Iterator[tuple[int, list[int]]]:
        """As `Writer.write` says. Raises `PeagleError` when vLLM breaks off."""
        self._program.say(list(orders))
        for _ in orders:
            told = self._hear()
            assert told is not None, "said once only"
            yield told

    def close(self) -> None:
        """End the child."""
        self._program.close()

    def _hear(self) -> tuple[int, list[int]] | None:
        return _decoder.decode(self._program.hear())


def _environment(installation: Installation) -> dict[str, str]:
    """The child is one process, so that nothing outlives it; what a user sets wins."""
    ours = {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "HF_HUB_OFFLINE": "1"}
    cache = {"VLLM_CPU_KVCACHE_SPACE": _CACHE_GIB} if installation.cpu else {}
    return {**launch.defaults(installation), **cache, **os.environ, **ours}
