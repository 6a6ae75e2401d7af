"""Tensors and whole layers out of safetensors files, memory-mapped and read by name."""

from pathlib import Path

import torch
from safetensors import safe_open
from torch import Tensor

from peagle_cli.engine.torch.layers import Attention, DecoderLayer, Mlp, RmsNorm
from peagle_cli.engine.torch.linear import Linear, linear
from peagle_cli.engine.torch.packed import PackedMatrices
from peagle_cli.models.config import LlamaConfig, read_json
from peagle_cli.models.headers import INDEX, SINGLE


class Weights:
    """A checkpoint on disk; floating-point tensors arrive on `device` in `dtype`. Knows sharded checkpoints.

    Matrices that `packed` has at 4 bits are multiplied so.
    """

    def __init__(
        self, folder: Path, device: torch.device, dtype: torch.dtype, packed: PackedMatrices | None = None
    ) -> None:
        self._dtype = dtype
        self._packed = packed
        index = folder / INDEX
        files = set(read_json(index)["weight_map"].values()) if index.exists() else {SINGLE}
        self._files = {}
        for file in sorted(files):
            opened = safe_open(folder / file, framework="pt", device=str(device))
            self._files.update(dict.fromkeys(opened.keys(), opened))

    def __contains__(self, name: str) -> bool:
        return name in self._files

    def tensor(self, name: str) -> Tensor:
        """One tensor by name."""
        tensor: Tensor = self._files[name].get_tensor(name)
        return tensor.to(self._dtype) if tensor.is_floating_point() else tensor

    def linear(self, *names: str) -> Linear:
        """One product with the weight matrices `names`, which share their input."""
        int4 = self._packed.stack(names) if self._packed else None
        return linear(*(self.tensor(name) for name in names), int4=int4)

    def norm(self, name: str, config: LlamaConfig) -> RmsNorm:
        """The norm called `name`."""
        return RmsNorm(self.tensor(f"{name}.weight"), config.rms_norm_eps)

    def attention(self, layer: str, config: LlamaConfig) -> Attention:
        """The attention half of the layer called `layer`."""
        qkv = self.linear(*(f"{layer}.self_attn.{part}_proj.weight" for part in "qkv"))
        return Attention(qkv, self.linear(f"{layer}.self_attn.o_proj.weight"), config)

    def mlp(self, layer: str) -> Mlp:
        """The feed-forward half of the layer called `layer`."""
        gate_up = self.linear(*(f"{layer}.mlp.{part}_proj.weight" for part in ("gate", "up")))
        return Mlp(gate_up, self.linear(f"{layer}.mlp.down_proj.weight"))

    def layer(self, name: str, config: LlamaConfig) -> DecoderLayer:
        """The Llama layer called `name`."""
        return DecoderLayer(
            self.norm(f"{name}.input_layernorm", config),
            self.attention(name, config),
            self.norm(f"{name}.post_attention_layernorm", config),
            self.mlp(name),
        )
