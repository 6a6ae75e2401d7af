"""EAGLE-3 and P-EAGLE drafters, with the semantics and the checkpoint format of vLLM.

A drafter reads the context in slots. Slot t pairs the token x[t+1] with the target's auxiliary states at t (the EAGLE
shift), stands at position t, and predicts x[t+2]. So with n tokens known, of which the target has processed all but
the last, slots 0 … n-2 are real, and the last of them predicts the first drafted token. Real slots enter the drafter's
own KV cache once and stay; those that stand for drafted tokens are dropped when the draft ends.

Shapes: H the drafter's hidden size, T the target's, V and Vd the target's vocabulary and the drafter's part of it.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from peagle_cli.engine.torch.layers import (
    Attention,
    DecoderLayer,
    KVCache,
    LayerCache,
    Mlp,
    Positions,
    RmsNorm,
    Span,
    footprint,
)
from peagle_cli.engine.torch.linear import Linear
from peagle_cli.engine.torch.sampling import DraftRule
from peagle_cli.engine.torch.target import PREFILL_CHUNK, Target
from peagle_cli.engine.torch.weights import Weights
from peagle_cli.models.checkpoint import DrafterConfig
from peagle_cli.trace.events import Footprint, Method

MAX_DEPTH = 10
"""Drafted tokens per step at most. No drafter has a limit of its own; acceptance this deep is rare with any."""


@dataclass(frozen=True, slots=True)
class Draft:
    """The k tokens of one draft.

    `ids` are target ids. `logits` [k, Vd] are over the drafter's vocabulary, whose ids in the target's are
    `target_ids` [Vd]; so is `q` [k, Vd], the distributions that the tokens were drawn from, None when they are the
    drafter's first choices.
    """

    ids: list[int]
    logits: Tensor
    q: Tensor | None
    target_ids: Tensor

    def probs(self) -> Tensor:
        """The drafter's distributions [k, Vd], at temperature 1 where the tokens were not drawn."""
        return self.logits.float().softmax(dim=-1) if self.q is None else self.q

    def q_over_target(self, vocabulary: int) -> Tensor | None:
        """`q` over the target's vocabulary, [k, V]; None as `q` is."""
        if self.q is None:
            return None
        return self.q.new_zeros(len(self.ids), vocabulary).index_copy_(1, self.target_ids, self.q)


class FirstLayer:
    """A drafter's layer 0: it attends over embedding and hidden state side by side, [n, 2H]."""

    def __init__(
        self,
        embed_norm: RmsNorm,
        hidden_norm: RmsNorm,
        attention: Attention,
        mlp_norm: RmsNorm,
        mlp: Mlp,
        *,
        norm_before_residual: bool,
    ) -> None:
        self._embed_norm = embed_norm
        self._hidden_norm = hidden_norm
        self._attention = attention
        self._mlp_norm = mlp_norm
        self._mlp = mlp
        self._norm_before_residual = norm_before_residual

    @property
    def nbytes(self) -> int:
        """Bytes of its weights."""
        norms = (self._embed_norm, self._hidden_norm, self._mlp_norm)
        return sum(norm.nbytes for norm in norms) + self._attention.nbytes + self._mlp.nbytes

    def __call__(self, embeds: Tensor, hidden: Tensor, cache: LayerCache, span: Span) -> Tensor:
        """The residual stream [n, H] after this layer, from embeddings and hidden states [n, H] each."""
        normed = self._hidden_norm(hidden)
        residual = normed if self._norm_before_residual else hidden
        hidden = residual + self._attention(torch.cat([self._embed_norm(embeds), normed], -1), cache, span)
        return hidden + self._mlp(self._mlp_norm(hidden))


class Drafter(ABC):
    """A loaded drafter. It holds no sequence: callers keep a `KVCache` each, and give the whole context each time."""

    method: ClassVar[Method]

    def __init__(self, config: DrafterConfig, weights: Weights, target: Target, aux_layers: Sequence[int]) -> None:
        """Take the drafter's tensors out of `weights`; `aux_layers` are the target's layers whose states callers keep,
        this drafter's among them."""
        llama = config.llama
        self._config = llama
        embedding = "embed_tokens.weight"
        self._embedding = weights.tensor(embedding) if embedding in weights else target.embedding
        self._shares_embedding = embedding not in weights
        self._fc = weights.linear("fc.weight")
        self._first = FirstLayer(
            weights.norm("layers.0.input_layernorm", llama),
            weights.norm("layers.0.hidden_norm", llama),
            weights.attention("layers.0", llama),
            weights.norm("layers.0.post_attention_layernorm", llama),
            weights.mlp("layers.0"),
            norm_before_residual=config.norm_before_residual,
        )
        self._layers: list[DecoderLayer] = [
            weights.layer(f"layers.{i}", llama) for i in range(1, llama.num_hidden_layers)
        ]
        self._norm = weights.norm("norm", llama)
        self._head: Linear = weights.linear("lm_head.weight")
        # d2t holds offsets: draft id i is target id i + d2t[i].
        self._target_ids = torch.arange(config.draft_vocab_size, device=target.device)
        if "d2t" in weights:
            self._target_ids += weights.tensor("d2t")
        self._columns = _columns(config.aux_layers, aux_layers, target)
        self._context = target.context
        self._positions = Positions(llama, target.context, target.device, target.dtype)
        self._device, self._dtype = target.device, target.dtype

    @property
    def footprint(self) -> Footprint:
        """What it asks of memory and attention."""
        weights = self._fc.nbytes + self._first.nbytes + sum(layer.nbytes for layer in self._layers)
        weights += self._norm.nbytes + self._head.nbytes + self._target_ids.nbytes
        if not self._shares_embedding:
            weights += self._embedding.nbytes
        return footprint(self._config, weights, self._dtype)

    def new_cache(self) -> KVCache:
        """An empty cache for one sequence; its length counts real slots."""
        return KVCache(self._config, self._config.num_hidden_layers, self._context, self._device, self._dtype)

    @torch.inference_mode()
    def read(self, ids: Tensor, aux: Tensor, cache: KVCache) -> None:
        """Bring `cache` up to date with the tokens `ids` [n] and their auxiliary states `aux` [≥ n - 1, …], a chunk of
        slots at a time."""
        while cache.length < ids.shape[0] - 1:
            stop = min(cache.length + PREFILL_CHUNK, ids.shape[0] - 1)
            self._forward(*self._slots(ids, aux, cache.length, stop), cache)
            cache.length = stop

    @torch.inference_mode()
    def draft(self, ids: Tensor, aux: Tensor, cache: KVCache, depth: int, rule: DraftRule) -> Draft:
        """Propose `depth` (at least 1) tokens to follow `ids` [n], given the auxiliary states `aux` [n - 1, …] of all
        but the last. Slots that `cache` lacks are read first; afterwards it holds all n - 1."""
        slots = ids.shape[0] - 1
        if slots - cache.length > PREFILL_CHUNK:
            self.read(ids[:-1], aux, cache)
        embeds, hidden = self._slots(ids, aux, cache.length, slots)
        draft = self._propose(embeds, hidden, cache, depth, rule)
        cache.length = slots
        return draft

    @abstractmethod
    def _propose(self, embeds: Tensor, hidden: Tensor, cache: KVCache, depth: int, rule: DraftRule) -> Draft:
        """Draft `depth` tokens after the real slots that `cache` still lacks, [m, H] each; m is at least 1."""

    def _slots(self, ids: Tensor, aux: Tensor, start: int, stop: int) -> tuple[Tensor, Tensor]:
        """Embeddings and hidden states [stop - start, H] of real slots."""
        return F.embedding(ids[start + 1 : stop + 1], self._embedding), self._fuse(aux[start:stop])

    def _fuse(self, aux: Tensor) -> Tensor:
        """Auxiliary states as the target's caller keeps them, projected to hidden states [n, H]."""
        return self._fc(aux if self._columns is None else aux[:, self._columns])

    def _forward(self, embeds: Tensor, hidden: Tensor, cache: KVCache) -> Tensor:
        """The residual stream [n, H] behind the last layer, for slots that follow those in `cache`."""
        span = self._positions.span(cache.length, embeds.shape[0])
        cache.show(span.keys)
        hidden = self._first(embeds, hidden, cache.layers[0], span)
        for layer, layer_cache in zip(self._layers, cache.layers[1:], strict=True):
            hidden = layer(hidden, layer_cache, span)
        return hidden

    def _logits(self, hidden: Tensor) -> Tensor:
        """Scores over the drafter's vocabulary [n, Vd]."""
        return self._head(self._norm(hidden))


class Eagle3Drafter(Drafter):
    """Drafts one token per pass; each pass feeds its own output, before the final norm, to the next as hidden state."""

    method = "eagle3"

    def _propose(self, embeds: Tensor, hidden: Tensor, cache: KVCache, depth: int, rule: DraftRule) -> Draft:
        ids, logits, qs = [], [], []
        for _ in range(depth):
            slots = embeds.shape[0]
            hidden = self._forward(embeds, hidden, cache)[-1:]
            cache.length += slots
            logits.append(self._logits(hidden))
            choice, q = rule.choose(logits[-1])
            ids.append(self._target_ids[choice])
            qs.append(q)
            embeds = F.embedding(ids[-1], self._embedding)
        drawn = [q for q in qs if q is not None]
        return Draft(torch.cat(ids).tolist(), torch.cat(logits), torch.cat(drawn) if drawn else None, self._target_ids)


class PeagleDrafter(Drafter):
    """Drafts all tokens in one pass: behind the real slots stand depth - 1 mask slots, which share one embedding (that
    of an unused token) and one learned hidden state."""

    method = "peagle"

    def __init__(self, config: DrafterConfig, weights: Weights, target: Target, aux_layers: Sequence[int]) -> None:
        super().__init__(config, weights, target, aux_layers)
        assert config.mask_token_id is not None
        self._mask_embed = self._embedding[config.mask_token_id][None]
        self._mask_hidden = self._fc(weights.tensor("mask_hidden").view(1, -1))

    def _propose(self, embeds: Tensor, hidden: Tensor, cache: KVCache, depth: int, rule: DraftRule) -> Draft:
        masks = depth - 1
        embeds = torch.cat([embeds, self._mask_embed.expand(masks, -1)])
        hidden = torch.cat([hidden, self._mask_hidden.expand(masks, -1)])
        logits = self._logits(self._forward(embeds, hidden, cache)[-depth:])
        choice, q = rule.choose(logits)
        return Draft(self._target_ids[choice].tolist(), logits, q, self._target_ids)


DRAFTERS: dict[Method, type[Drafter]] = {drafter.method: drafter for drafter in (Eagle3Drafter, PeagleDrafter)}


def _columns(own: Sequence[int], kept: Sequence[int], target: Target) -> Tensor | None:
    """Which columns of the kept auxiliary states are a drafter's `own` layers; None if all are, in order."""
    if list(own) == list(kept):
        return None
    size = target.config.hidden_size
    starts = torch.tensor([kept.index(layer) * size for layer in own], device=target.device)
    return (starts[:, None] + torch.arange(size, device=target.device)).flatten()
