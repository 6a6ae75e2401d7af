"""A GGUF file's 4-bit matrices in the order of this processor's kernel.

Reading them out of the file and ordering them takes seconds, so that is done once: the result lies beside the file, and
loading maps it into memory. The order is an affair of torch and of the processor, whose names are part of the file's.
"""

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from peagle_cli.engine.torch.linear import Int4

if TYPE_CHECKING:  # read only where weights are yet to be packed
    from peagle_cli.models.gguf import Q4Matrix

log = logging.getLogger(__name__)


class PackedMatrices:
    """The 4-bit form of matrices, by their names. `keep` what was packed, once all has been asked for."""

    def __init__(self, source: Path) -> None:
        """`source` is the GGUF file."""
        self._source = source
        # Not called *.safetensors: vLLM reads every file of that name in a model's folder.
        kind = f"{torch.backends.cpu.get_cpu_capability()}-torch-{torch.__version__}".lower()
        self._file = source.with_name(f"{source.stem}.int4-{kind}")
        self._known = _read(self._file)
        self.are_kept = bool(self._known)
        """Whether packing them has been done."""
        self._matrices: dict[str, Q4Matrix] | None = None

    def stack(self, names: Sequence[str]) -> Int4 | None:
        """The matrices `names` on top of each other; None where one of them is not at 4 bits."""
        key = "+".join(names)
        if f"{key}.packed" not in self._known and not self._pack(names, key):
            return None
        return Int4(self._known[f"{key}.packed"], self._known[f"{key}.scales"])

    def keep(self) -> None:
        """Write what had to be packed, for the next time."""
        if self._matrices is None:
            return
        self._matrices = None
        part = self._file.with_name(f"{self._file.name}.{os.getpid()}")
        try:
            save_file(self._known, part)
            part.replace(self._file)
        except (OSError, SafetensorError):  # the latter, too, of a disk that is full
            part.unlink(missing_ok=True)
            log.warning("The packed weights cannot be kept in %s; they are packed at each start.", self._file.parent)

    def _pack(self, names: Sequence[str], key: str) -> bool:
        if self._matrices is None:
            from peagle_cli.models import gguf  # noqa: PLC0415  (imports what a model that is packed needs not)

            self._matrices = gguf.q4_matrices(self._source)
        if not all(name in self._matrices for name in names):
            return False
        stacked = (
            torch.cat(parts) for parts in zip(*(map(torch.from_numpy, self._matrices[n]) for n in names), strict=True)
        )
        self._known[f"{key}.packed"], self._known[f"{key}.scales"] = Int4.pack(*stacked)
        return True


def _read(file: Path) -> dict[str, Tensor]:
    """What was kept; nothing where that is not there, or damaged: then it is packed anew."""
    try:
        return load_file(file)
    except (OSError, SafetensorError):
        return {}
