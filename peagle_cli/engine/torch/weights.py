"""Tensors out of safetensors files, memory-mapped and read by name."""

from collections.abc import Callable
from pathlib import Path

import torch
from safetensors import safe_open
from torch import Tensor

from peagle_cli.models.config import read_json


def open_weights(folder: Path, device: torch.device, dtype: torch.dtype) -> Callable[[str], Tensor]:
    """A reader of the model's tensors by name; floating-point ones arrive in `dtype`. Knows sharded checkpoints."""
    index = folder / "model.safetensors.index.json"
    shards: dict[str, str] = read_json(index)["weight_map"] if index.exists() else {}
    files = {
        name: safe_open(folder / name, framework="pt", device=str(device))
        for name in {*shards.values()} or {"model.safetensors"}
    }

    def read(name: str) -> Tensor:
        tensor: Tensor = files[shards.get(name, "model.safetensors")].get_tensor(name)
        return tensor.to(dtype) if tensor.is_floating_point() else tensor

    return read
