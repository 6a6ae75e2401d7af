"""The drafter as it is trained: vLLM's EAGLE-3 Llama with differentiable weights, in batches of sequences.

A slot t pairs the token x[t+1] with the target's auxiliary states at t and predicts x[t+2] (the EAGLE shift). Besides
these real slots there are draft slots (a, d): the d-th slot of a draft that starts behind the real slot a, its anchor.
It stands at position a + d, predicts x[a+d+2], and sees the real slots 0 … a and its own draft's slots (a, 1) … (a,
d). Both methods are trained on such slots; they differ in what goes into them.

Shapes: B sequences, T real slots, M draft slots, H hidden size, A auxiliary states' size, Nq query and Nk key heads of
size D, Vd the draft vocabulary.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from peagle_cli.engine.torch.layers import rotary_frequencies
from peagle_cli.engine.torch.target import Target
from peagle_cli.models.config import LlamaConfig
from peagle_cli.train.fused import rms_norm, rotate, swiglu


class Shape(NamedTuple):
    """What a drafter is built from: its Llama configuration, its part of the vocabulary, and whose states it reads."""

    llama: LlamaConfig
    draft_vocab: int
    aux_layers: tuple[int, ...]
    mask_token: int | None

    @property
    def aux_size(self) -> int:
        """A: the size of the auxiliary states side by side."""
        return len(self.aux_layers) * self.llama.hidden_size


class Heads(NamedTuple):
    """A layer's queries [B, S, Nq, D], keys and values [B, S, Nk, D]; queries and keys are turned to their
    positions."""

    queries: Tensor
    keys: Tensor
    values: Tensor


class Layer(nn.Module):
    """A Llama layer's float32 master weights. The first layer attends over embedding and hidden state side by side."""

    def __init__(self, config: LlamaConfig, *, first: bool) -> None:
        super().__init__()
        hidden, head = config.hidden_size, config.head_dim
        inputs = 2 * hidden if first else hidden
        self._head_dim = head
        self._eps = config.rms_norm_eps
        self.q = _matrix(config.num_attention_heads * head, inputs)
        self.k = _matrix(config.num_key_value_heads * head, inputs)
        self.v = _matrix(config.num_key_value_heads * head, inputs)
        self.o = _matrix(hidden, config.num_attention_heads * head)
        self.gate = _matrix(config.intermediate_size, hidden)
        self.up = _matrix(config.intermediate_size, hidden)
        self.down = _matrix(hidden, config.intermediate_size)
        self.input_norm = nn.Parameter(torch.ones(hidden))
        self.mlp_norm = nn.Parameter(torch.ones(hidden))
        self.hidden_norm = nn.Parameter(torch.ones(hidden)) if first else None

    def cast(self, dtype: torch.dtype) -> "CastLayer":
        """The layer to compute with in `dtype`, for one step; gradients reach the master weights."""
        return CastLayer(
            qkv=torch.cat([self.q, self.k, self.v]).to(dtype),
            o=self.o.to(dtype),
            gate_up=torch.cat([self.gate, self.up]).to(dtype),
            down=self.down.to(dtype),
            input_norm=self.input_norm.to(dtype),
            mlp_norm=self.mlp_norm.to(dtype),
            hidden_norm=None if self.hidden_norm is None else self.hidden_norm.to(dtype),
            heads_at=(self.q.shape[0] // self._head_dim, self.k.shape[0] // self._head_dim),
            eps=self._eps,
        )


class CastLayer(NamedTuple):
    """A layer's weights as they are computed with; those with the same input are stacked. `heads_at` are the numbers of
    query heads and of key heads."""

    qkv: Tensor
    o: Tensor
    gate_up: Tensor
    down: Tensor
    input_norm: Tensor
    mlp_norm: Tensor
    hidden_norm: Tensor | None
    heads_at: tuple[int, int]
    eps: float

    def inputs(self, embeds: Tensor, hidden: Tensor) -> Tensor:
        """What the attention reads, [B, S, 2H] in the first layer and [B, S, H] in the others."""
        if self.hidden_norm is None:
            return rms_norm(hidden, self.input_norm, self.eps)
        normed = rms_norm(hidden, self.hidden_norm, self.eps)
        return torch.cat([rms_norm(embeds, self.input_norm, self.eps), normed], -1)

    def heads(self, inputs: Tensor, rotation: tuple[Tensor, Tensor]) -> Heads:
        """Queries, keys and values for what `inputs` returned, at the positions that `rotation` stands for."""
        query_heads, key_heads = self.heads_at
        heads = F.linear(inputs, self.qkv).unflatten(-1, (query_heads + 2 * key_heads, -1))
        turned, values = heads.split([query_heads + key_heads, key_heads], -2)
        queries, keys = rotate(turned, *rotation).split([query_heads, key_heads], -2)
        return Heads(queries, keys, values)

    def finish(self, hidden: Tensor, mixed: Tensor) -> Tensor:
        """The residual stream behind the layer, from the one before it and what attention mixed, [B, S, Nq, D]."""
        hidden = hidden + F.linear(mixed.flatten(-2), self.o)
        normed = rms_norm(hidden, self.mlp_norm, self.eps)
        return hidden + F.linear(swiglu(F.linear(normed, self.gate_up)), self.down)


class TrainableDrafter(nn.Module):
    """A drafter with float32 master weights. It shares the target's embeddings, frozen.

    `fc` reads auxiliary states divided by `scale` [A], their spread per channel: some channels are thousands of times
    larger than others. `draft_ids` [Vd] are the target ids of the draft vocabulary, in ascending order.
    """

    draft_ids: Tensor
    scale: Tensor
    embedding: Tensor

    def __init__(self, shape: Shape, draft_ids: Tensor, embedding: Tensor) -> None:
        super().__init__()
        self.shape = shape
        config = shape.llama
        self.register_buffer("draft_ids", draft_ids)
        self.register_buffer("scale", torch.ones(shape.aux_size))
        self.register_buffer("embedding", embedding, persistent=False)
        self.fc = _matrix(config.hidden_size, shape.aux_size)
        self.layers = nn.ModuleList(Layer(config, first=i == 0) for i in range(config.num_hidden_layers))
        self.norm = nn.Parameter(torch.ones(config.hidden_size))
        self.lm_head = _matrix(shape.draft_vocab, config.hidden_size)
        self.mask_hidden = None if shape.mask_token is None else nn.Parameter(torch.zeros(shape.aux_size))
        self._tables: _Tables | None = None

    @property
    def layer_list(self) -> list[Layer]:
        """The layers, typed."""
        return [layer for layer in self.layers if isinstance(layer, Layer)]

    def cast_layers(self) -> list[CastLayer]:
        """The layers to compute with, for one step."""
        return [layer.cast(self.embedding.dtype) for layer in self.layer_list]

    def embed(self, ids: Tensor) -> Tensor:
        """The target's embeddings of token ids, [..., H]."""
        return F.embedding(ids, self.embedding)

    def fuse(self, aux: Tensor) -> Tensor:
        """Hidden states [..., H] from auxiliary states [..., A]."""
        return F.linear(aux, (self.fc / self.scale).to(aux.dtype))

    def mask_slot(self) -> tuple[Tensor, Tensor]:
        """Embedding and hidden state [H] that all mask slots share."""
        assert self.mask_hidden is not None and self.shape.mask_token is not None
        hidden = F.linear(self.mask_hidden, self.fc)
        return self.embedding[self.shape.mask_token], hidden.to(self.embedding.dtype)

    def rotation(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Cosines and sines [..., 1, D / 2] that turn heads to `positions`."""
        tables = self._tables_for(int(positions.max()) + 1)
        return tables.cos[positions][..., None, :], tables.sin[positions][..., None, :]

    def mask(self, length: int) -> Tensor:
        """What is added to the scores of real slots, [length, length]: 0 where a slot sees another, -inf where not.

        Its rows are also what draft slots see of the real slots: that of (a, d) is row a.
        """
        return self._tables_for(length).mask[:length, :length]

    def _tables_for(self, length: int) -> "_Tables":
        """Built once, for the longest sequence so far, and sliced."""
        if self._tables is None or len(self._tables.mask) < length:
            self._tables = _Tables.of(self.shape.llama, max(length, 512), self.embedding)
        return self._tables

    def outputs(self, hidden: Tensor) -> Tensor:
        """What `lm_head` reads: the residual stream [..., H], normed."""
        return rms_norm(hidden, self.norm.to(hidden.dtype), self.shape.llama.rms_norm_eps)


class _Tables(NamedTuple):
    """What depends on positions only: rotary cosines and sines [length, D / 2], and the mask of real slots."""

    cos: Tensor
    sin: Tensor
    mask: Tensor

    @classmethod
    def of(cls, config: LlamaConfig, length: int, like: Tensor) -> "_Tables":
        """For `length` positions, with the dtype and on the device of `like`."""
        angles = torch.arange(length)[:, None] * rotary_frequencies(config)
        mask = torch.full((length, length), -torch.inf).triu_(1)
        return cls(*(table.to(like) for table in (angles.cos(), angles.sin(), mask)))


class TargetHead(NamedTuple):
    """What soft targets are computed from: the target's final norm, and its head's rows for the draft vocabulary."""

    norm: Tensor
    rows: Tensor
    eps: float

    @classmethod
    def of(cls, target: Target, draft_ids: Tensor) -> "TargetHead":
        """Cut out of a loaded target."""
        return cls(target.norm.weight, target.head.weight[draft_ids], target.config.rms_norm_eps)

    def logits(self, aux: Tensor) -> Tensor:
        """The target's scores over the draft vocabulary [..., Vd] from auxiliary states that end with the last
        layer's."""
        return F.linear(F.rms_norm(aux[..., -self.norm.shape[0] :], self.norm.shape, self.norm, self.eps), self.rows)


def _matrix(rows: int, columns: int) -> nn.Parameter:
    return nn.Parameter(torch.randn(rows, columns) * columns**-0.5)
