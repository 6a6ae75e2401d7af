"""The target: a Llama-family model that decides which tokens are right."""

from collections.abc import Sequence
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from peagle_cli.engine.torch.hardware import dtype_name
from peagle_cli.engine.torch.layers import DecoderLayer, KVCache, Positions, RmsNorm, footprint
from peagle_cli.engine.torch.linear import Int8Linear, Linear, linear
from peagle_cli.engine.torch.packed import PackedMatrices
from peagle_cli.engine.torch.weights import Weights
from peagle_cli.models.config import LlamaConfig
from peagle_cli.trace.events import Footprint

PREFILL_CHUNK = 512
"""Tokens per pass of a long prompt: bounds the memory of attention masks, at no cost in speed."""


class Target:
    """A loaded target. It holds no sequence: callers keep a `KVCache` each. `weights` names how they are kept."""

    def __init__(
        self,
        config: LlamaConfig,
        embedding: Tensor,
        layers: Sequence[DecoderLayer],
        norm: RmsNorm,
        head: Linear,
        context: int,
        *,
        at_4_bits: bool,
    ) -> None:
        self.config = config
        self.context = context
        self.embedding = embedding
        self.norm = norm
        self.head = head
        self.weights = "int4" if at_4_bits else dtype_name(embedding.dtype)
        self.device = embedding.device
        self.dtype = embedding.dtype
        self._layers = layers
        self._positions = Positions(config, context, self.device, self.dtype)

    @classmethod
    def load(
        cls,
        folder: Path,
        device: torch.device,
        dtype: torch.dtype,
        context: int | None = None,
        packed: PackedMatrices | None = None,
    ) -> "Target":
        """Read a Hugging Face style folder. `context` shortens the model's own longest context; `packed` has its
        layers' matrices at 4 bits; the head is then kept at 8."""
        config = LlamaConfig.read(folder)
        weights = Weights(folder, device, dtype, packed)
        embedding = weights.tensor("model.embed_tokens.weight")
        head = embedding if config.tie_word_embeddings else weights.tensor("lm_head.weight")
        return cls(
            config,
            embedding,
            [weights.layer(f"model.layers.{i}", config) for i in range(config.num_hidden_layers)],
            weights.norm("model.norm", config),
            Int8Linear(head) if packed else linear(head),
            min(context or config.max_position_embeddings, config.max_position_embeddings),
            at_4_bits=packed is not None,
        )

    @property
    def footprint(self) -> Footprint:
        """What it asks of memory and attention. A head that is the embedding counts once."""
        weights = sum(layer.nbytes for layer in self._layers) + self.norm.nbytes + self.head.nbytes
        if not self.config.tie_word_embeddings:
            weights += self.embedding.nbytes
        return footprint(self.config, weights, self.dtype)

    def new_cache(self) -> KVCache:
        """An empty cache for one sequence."""
        return KVCache(self.config, len(self._layers), self.context, self.device, self.dtype)

    @torch.inference_mode()
    def forward(self, ids: Tensor, cache: KVCache, aux_layers: Sequence[int] = ()) -> tuple[Tensor, Tensor]:
        """Continue the cached sequence with ids [n].

        Returns the hidden states after the last layer, before the final norm, [n, H]; and the auxiliary states
        [n, len(aux_layers)·H]: the residual stream entering each of those layers (Hugging Face's `hidden_states[i]`;
        an id equal to the number of layers is the last layer's output).
        """
        span = self._positions.span(cache.length, ids.shape[0])
        cache.show(span.keys)
        hidden = F.embedding(ids, self.embedding)
        entering = []
        for layer, layer_cache in zip(self._layers, cache.layers, strict=True):
            entering.append(hidden)
            hidden = layer(hidden, layer_cache, span)
        entering.append(hidden)
        cache.length = span.stop
        aux = torch.cat([entering[i] for i in aux_layers], -1) if aux_layers else hidden[:, :0]
        return hidden, aux

    @torch.inference_mode()
    def prefill(self, ids: Tensor, cache: KVCache, aux_layers: Sequence[int] = ()) -> tuple[Tensor, Tensor]:
        """`forward` for any number of tokens, a chunk at a time."""
        passes = [self.forward(chunk, cache, aux_layers) for chunk in ids.split(PREFILL_CHUNK)]
        return torch.cat([hidden for hidden, _ in passes]), torch.cat([aux for _, aux in passes])

    @torch.inference_mode()
    def logits(self, hidden: Tensor) -> Tensor:
        """Scores over the vocabulary [n, V] for hidden states [n, H] from before the final norm."""
        return self.head(self.norm(hidden))
