"""Attention of real slots and draft slots, differentiable.

A draft slot sees real slots and the slots of its own draft. Its scores with the latter are products row by row, so that
nothing of the size of all drafts times all drafts is ever formed. Shapes: B sequences, S slots that ask, K slots that
are seen, Nq query and Nk key heads of size D; the G = Nq / Nk query heads that share a key head become rows of one
matrix.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

BLOCK = 128
"""Neighbouring slots that ask together: they share the keys that are scored, up to those that the last one sees."""


class Part(NamedTuple):
    """What the slots `start` … `stop` - 1 see: the first `seen` slots, to whose last m scores `mask` [B or 1, stop -
    start, m] is added, and their own drafts: the j-th of them sees the slots `own[i]` + j.

    `kept` says that its attention weights are kept for the backward pass, not computed again.
    """

    start: int
    stop: int
    seen: int
    mask: Tensor
    own: tuple[int, ...] = ()
    kept: bool = True


def causal_parts(mask: Tensor, first: int, length: int, own: Sequence[int] = (), *, kept: bool) -> Iterator[Part]:
    """Parts for slots that ask from behind the neighbouring real slots `first` … `length` - 1, one each, which see the
    real slots up to there. `mask` [length, length] is the causal one, `own[i]` where the i-th draft slots begin."""
    for begin in range(first, length, BLOCK):
        end = min(begin + BLOCK, length)
        offset = begin - first
        drafts = tuple(start + offset for start in own)
        yield Part(offset, end - first, end, mask[None, begin:end, begin:end], drafts, kept)


def attend(queries: Tensor, keys: Tensor, values: Tensor, parts: Sequence[Part]) -> Tensor:
    """What attention mixes, [B, S, Nq, D], for `queries` [B, S, Nq, D] over `keys` and `values` [B, K, Nk, D]; `parts`
    cover all queries."""
    apply: Callable[..., Tensor] = _Attention.apply
    return apply(queries, keys, values, parts)


class _Attention(Function):
    @staticmethod
    def forward(ctx: Any, queries: Tensor, keys: Tensor, values: Tensor, parts: Sequence[Part]) -> Tensor:
        keys, values = (tensor.transpose(1, 2).contiguous() for tensor in (keys, values))
        mixed = torch.empty_like(queries)
        kept = []
        for part in parts:
            rows = _rows(queries, part, keys.shape[1]) * queries.shape[-1] ** -0.5
            weights = _weights(rows, keys, part)
            _put(mixed, part, _mix(weights, values, part))
            kept += [weights] if part.kept else []
        ctx.parts = parts
        ctx.save_for_backward(queries, keys, values, *kept)
        return mixed

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        queries, keys, values, *kept = ctx.saved_tensors
        scale = queries.shape[-1] ** -0.5
        to_queries, to_keys, to_values = torch.empty_like(queries), torch.zeros_like(keys), torch.zeros_like(values)
        saved = iter(kept)
        for part in ctx.parts:
            rows = _rows(queries, part, keys.shape[1]) * scale
            weights = next(saved) if part.kept else _weights(rows, keys, part)
            mixed = _rows(grads[0], part, keys.shape[1])
            _collect(to_values, weights, mixed, part)
            to_weights = _scores(mixed, values, part)
            to_scores = torch.ops.aten._softmax_backward_data(to_weights, weights, -1, weights.dtype)
            _collect(to_keys, to_scores, rows, part)
            _put(to_queries, part, _mix(to_scores, keys, part) * scale)
        return to_queries, to_keys.transpose(1, 2), to_values.transpose(1, 2), None


def _rows(slots: Tensor, part: Part, key_heads: int) -> Tensor:
    """The part's slots of [B, S, Nq, D] as [B, Nk, G, n, D]."""
    heads: Tensor = slots[:, part.start : part.stop].unflatten(2, (key_heads, -1))
    return heads.permute(0, 2, 3, 1, 4).contiguous()


def _put(slots: Tensor, part: Part, rows: Tensor) -> None:
    """The inverse of `_rows`."""
    slots[:, part.start : part.stop].unflatten(2, rows.shape[1:3]).copy_(rows.permute(0, 3, 1, 2, 4))


def _own(slots: Tensor, part: Part) -> Iterator[Tensor]:
    """Of [B, Nk, K, D] what belongs to the part's own drafts, each [B, Nk, 1, n, D]."""
    for start in part.own:
        yield slots[:, :, None, start : start + part.stop - part.start]


def _seen(slots: Tensor, part: Part) -> Tensor:
    """Of [B, Nk, K, D] what all of the part's slots may see, with zeros where own drafts come: [B · Nk, W, D]."""
    return F.pad(slots[:, :, : part.seen], (0, 0, 0, len(part.own))).flatten(0, 1)


def _flat(rows: Tensor) -> Tensor:
    """[B, Nk, G, n, …] as [B · Nk, G · n, …]."""
    return rows.flatten(2, 3).flatten(0, 1)


def _scores(rows: Tensor, slots: Tensor, part: Part) -> Tensor:
    """Products of `rows` [B, Nk, G, n, D] with the `slots` [B, Nk, K, D] that they see: [B, Nk, G, n, W]."""
    scores = torch.bmm(_flat(rows), _seen(slots, part).transpose(1, 2)).view(*rows.shape[:-1], -1)
    for i, own in enumerate(_own(slots, part), part.seen):
        torch.sum(rows * own, -1, out=scores[..., i])
    return scores


def _weights(rows: Tensor, keys: Tensor, part: Part) -> Tensor:
    scores = _scores(rows, keys, part)
    scores[..., part.seen - part.mask.shape[-1] : part.seen] += part.mask[:, None, None]
    return scores.softmax(-1)


def _mix(weights: Tensor, slots: Tensor, part: Part) -> Tensor:
    """Sums of the `slots` that are seen, by `weights` [B, Nk, G, n, W]: [B, Nk, G, n, D]."""
    mixed = torch.bmm(_flat(weights), _seen(slots, part)).view(*weights.shape[:-1], -1)
    for i, own in enumerate(_own(slots, part), part.seen):
        mixed.addcmul_(weights[..., i, None], own)
    return mixed


def _collect(slots: Tensor, weights: Tensor, rows: Tensor, part: Part) -> None:
    """Add to each of the `slots` that are seen the sum of `rows`, by `weights`: the transpose of `_mix`."""
    sums = torch.bmm(_flat(weights).transpose(1, 2), _flat(rows)).unflatten(0, slots.shape[:2])
    slots[:, :, : part.seen] += sums[:, :, : part.seen]
    for i, own in enumerate(_own(slots, part), part.seen):
        own.add_((weights[..., i, None] * rows).sum(2, keepdim=True))
