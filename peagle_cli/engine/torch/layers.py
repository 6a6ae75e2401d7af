"""The parts of a Llama layer, for a single sequence: target and drafters are built from these.

Shapes: n new tokens, H hidden size, D head size, Nq query heads, Nk key/value heads, G = Nq / Nk, S tokens of context
including the new ones.
"""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from peagle_cli.engine.torch.linear import Linear
from peagle_cli.models.config import Llama3Scaling, LlamaConfig
from peagle_cli.trace.events import Footprint

KEY_BLOCK = 64
"""Attention reads keys in whole blocks, with a mask over those that are not to be seen.

torch's CPU kernel adds up a block's scores in an order that depends on how many there are. In whole blocks a token's
result does not depend on how many tokens share its pass. Where matrix products do not either, as with the bfloat16
kernels for AVX-512 and AMX, verifying a draft gives, to the bit, what plain decoding gives.
"""

QUERY_BLOCK = 32
"""Rows of queries that torch's CPU kernel takes at a time."""

FEWEST_QUERIES = 3
"""A block of fewer rows is multiplied in another order, by which results can differ in their last bit."""


class RmsNorm:
    """x / √(mean(x²) + eps) · weight over the last dimension, computed in float32.

    With the weight scaled beforehand it is x · (weight · √H) / √(|x|² + H · eps): half the operations of torch's own.
    """

    def __init__(self, weight: Tensor, eps: float) -> None:
        size = weight.shape[0]
        self.weight = weight
        self._scaled = weight.float() * size**0.5
        self._floor = torch.tensor((size * eps) ** 0.5, device=weight.device)

    @property
    def nbytes(self) -> int:
        """Bytes of its weights."""
        return self.weight.nbytes

    def __call__(self, x: Tensor) -> Tensor:
        """The norm of x [n, H], in its dtype."""
        wide = x.float()
        length = torch.linalg.vector_norm(wide, dim=-1, keepdim=True)
        normed: Tensor = (wide * self._scaled).div_(length.hypot_(self._floor))
        return normed.to(x.dtype)


class Span(NamedTuple):
    """Where n new tokens stand: computed once per pass and shared by its layers.

    `cos` and `sin` [n, Nq + 2·Nk, D] rotate queries and keys and leave values as they are; the first half of `sin` is
    negated, so that rotating is x · cos + roll(x, D/2) · sin. `mask` [1, 1, G·n, `keys`] is added to the scores: `keys`
    is `stop`, rounded up to whole blocks. It has a row or two more where the last block of queries would have
    fewer than `FEWEST_QUERIES`.
    """

    start: int
    stop: int
    keys: int
    cos: Tensor
    sin: Tensor
    mask: Tensor


class Positions:
    """Rotary tables for a whole context, and the spans cut from them."""

    def __init__(self, config: LlamaConfig, context: int, device: torch.device, dtype: torch.dtype) -> None:
        angles = torch.arange(context, dtype=torch.float32)[:, None] * rotary_frequencies(config)[None]
        self._cos = torch.cat([angles.cos(), angles.cos()], -1)[:, None].to(device, dtype)
        self._sin = torch.cat([-angles.sin(), angles.sin()], -1)[:, None].to(device, dtype)
        self._turned = config.num_attention_heads + config.num_key_value_heads
        self._still = torch.zeros(config.num_key_value_heads, config.head_dim, device=device, dtype=dtype)
        self._group = config.num_attention_heads // config.num_key_value_heads

    def span(self, start: int, n: int) -> Span:
        """The span of tokens start … start + n - 1, each of which sees itself and all before it."""
        stop = start + n
        keys = _whole(stop)
        mask = self._mask(start, n, keys)
        cos, sin = self._cos[start:stop], self._sin[start:stop]
        still = self._still.expand(n, -1, -1)
        return Span(
            start,
            stop,
            keys,
            torch.cat([cos.expand(-1, self._turned, -1), still + 1], 1),
            torch.cat([sin.expand(-1, self._turned, -1), still], 1),
            mask,
        )

    def _mask(self, start: int, n: int, keys: int) -> Tensor:
        mask = self._cos.new_zeros(n, keys)
        mask[:, start:] = torch.full_like(mask[:, start:], -math.inf).triu_(1)
        rows = mask.repeat(self._group, 1)
        last = len(rows) % QUERY_BLOCK
        missing = FEWEST_QUERIES - last if 0 < last < FEWEST_QUERIES else 0
        return F.pad(rows, (0, 0, 0, missing))[None, None]


def _whole(tokens: int) -> int:
    """So many tokens, rounded up to whole blocks."""
    return -(-tokens // KEY_BLOCK) * KEY_BLOCK


def rotary_frequencies(config: LlamaConfig) -> Tensor:
    """Rotary frequencies [D/2], stretched as Llama 3.1 does where the configuration asks for it."""
    exponents = torch.arange(0, config.head_dim, 2, dtype=torch.float32) / config.head_dim
    frequencies = 1.0 / config.rope_theta**exponents
    return frequencies if config.rope_scaling is None else _stretched(frequencies, config.rope_scaling)


def _stretched(frequencies: Tensor, scaling: Llama3Scaling) -> Tensor:
    """Llama 3.1's rule: long waves are slowed by `factor`, short ones kept, those between blended linearly."""
    turns = scaling.original_max_position_embeddings * frequencies / (2 * math.pi)
    blend = (turns - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor)
    blend = blend.clamp(0, 1)
    return frequencies * (blend + (1 - blend) / scaling.factor)


class LayerCache:
    """One layer's keys and values: `whole` [2·Nk, context, D], the keys first, is written in place; `keys` and `values`
    [1, Nk, S, D] are the part of it that attention reads."""

    def __init__(self, whole: Tensor) -> None:
        self.whole = whole
        self.show(0)

    def show(self, places: int) -> None:
        """Let attention read the first `places`."""
        self.keys, self.values = self.whole[None, :, :places].chunk(2, 1)


class KVCache:
    """Keys and values of every layer over a fixed context. `length` tokens are valid; lowering it rolls back."""

    def __init__(
        self, config: LlamaConfig, layers: int, context: int, device: torch.device, dtype: torch.dtype
    ) -> None:
        shape = (2 * config.num_key_value_heads, _whole(context), config.head_dim)
        # Left uninitialised: memory is touched, and so really taken, only as the context fills.
        self.layers = [LayerCache(torch.empty(shape, device=device, dtype=dtype)) for _ in range(layers)]
        self.context = context
        self.length = 0
        self._defined = 0
        self._shown = 0

    def show(self, places: int) -> None:
        """Let attention read the first `places`, whether written or not: what is masked must still be finite."""
        if places > self._defined:
            for layer in self.layers:
                layer.whole[:, self._defined : places].zero_()
            self._defined = places
        if places != self._shown:
            for layer in self.layers:
                layer.show(places)
            self._shown = places


class Attention:
    """Grouped-query attention with fused query, key and value products."""

    def __init__(self, qkv: Linear, out: Linear, config: LlamaConfig) -> None:
        self._qkv = qkv
        self._out = out
        self._query_heads = config.num_attention_heads
        self._key_heads = config.num_key_value_heads
        self._head_dim = config.head_dim

    @property
    def nbytes(self) -> int:
        """Bytes of its weights."""
        return self._qkv.nbytes + self._out.nbytes

    def __call__(self, x: Tensor, cache: LayerCache, span: Span) -> Tensor:
        """Attend from x [n, in] at `span`, whose keys and values are written to `cache`: [n, H]."""
        n = x.shape[0]
        heads = self._qkv(x).view(n, -1, self._head_dim)
        # Values go along, unturned: two operations on all heads cost less than taking them apart.
        heads = torch.addcmul(heads * span.cos, heads.roll(self._head_dim // 2, -1), span.sin)
        cache.whole[:, span.start : span.stop] = heads[:, self._query_heads :].transpose(0, 1)
        # The query heads that share a key head become rows of one matrix, so that keys need no repeating.
        queries = heads[:, : self._query_heads].view(n, self._key_heads, -1, self._head_dim)
        queries = queries.permute(1, 2, 0, 3).reshape(1, self._key_heads, -1, self._head_dim)
        rows = queries.shape[2]
        missing = span.mask.shape[2] - rows
        mixed = F.scaled_dot_product_attention(
            F.pad(queries, (0, 0, 0, missing)) if missing else queries,
            cache.keys,
            cache.values,
            attn_mask=span.mask,
        )
        mixed = mixed[:, :, :rows].reshape(self._key_heads, -1, n, self._head_dim).permute(2, 0, 1, 3)
        return self._out(mixed.reshape(n, -1))


class Mlp:
    """The gated feed-forward half of a layer, gate and up fused."""

    def __init__(self, gate_up: Linear, down: Linear) -> None:
        self._gate_up = gate_up
        self._down = down

    @property
    def nbytes(self) -> int:
        """Bytes of its weights."""
        return self._gate_up.nbytes + self._down.nbytes

    def __call__(self, x: Tensor) -> Tensor:
        """x [n, H] → [n, H]."""
        gate, up = self._gate_up(x).chunk(2, -1)
        return self._down(F.silu(gate).mul_(up))


class DecoderLayer:
    """A pre-norm Llama layer over the residual stream."""

    def __init__(self, input_norm: RmsNorm, attention: Attention, mlp_norm: RmsNorm, mlp: Mlp) -> None:
        self._input_norm = input_norm
        self._attention = attention
        self._mlp_norm = mlp_norm
        self._mlp = mlp

    @property
    def nbytes(self) -> int:
        """Bytes of its weights."""
        return self._input_norm.nbytes + self._attention.nbytes + self._mlp_norm.nbytes + self._mlp.nbytes

    def __call__(self, hidden: Tensor, cache: LayerCache, span: Span) -> Tensor:
        """The residual stream [n, H] after this layer."""
        hidden = hidden + self._attention(self._input_norm(hidden), cache, span)
        return hidden + self._mlp(self._mlp_norm(hidden))


def footprint(config: LlamaConfig, weights: int, dtype: torch.dtype) -> Footprint:
    """The footprint of a model of this shape, given the bytes of its `weights` and the dtype of its caches."""
    layers = config.num_hidden_layers
    return Footprint(
        weights=weights,
        kv_cache=2 * layers * config.num_key_value_heads * config.head_dim * dtype.itemsize,
        attention_flop=4 * layers * config.num_attention_heads * config.head_dim,
    )
