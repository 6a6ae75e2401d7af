"""Attention heads that find a draft's anchor, set rather than learnt.

All mask slots begin alike: one embedding, one hidden state. What they have to say is in their anchor, and until some
head looks there, they can only learn which tokens are frequent; finding it by gradient descent takes longer than all
the rest. But such a head can be written down. It needs a query on mask slots that prefers the nearest slot that is no
mask, hence a key that tells masks from real slots, and a score that falls with the distance.

Both "is a mask" and "is real" are linear read-outs of what a layer reads, fitted by ridge regression on a sample. A
score that falls with the distance is a sum of RoPE's own waves, fitted by least squares. Layer 0 is left alone: it may
come from an EAGLE-3 drafter, and the further layers then find its output at the anchor, which is what EAGLE-3 feeds
its next pass.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from peagle_cli.engine.torch.layers import rotary_frequencies
from peagle_cli.train.batch import Batch
from peagle_cli.train.model import Layer, TrainableDrafter
from peagle_cli.train.peagle import all_kept, draft_slots

NEAREST = 16.0
"""The score of a real slot at distance 0, to which a mask's is the negative."""
STEP = 1.5
"""How much the score falls with every slot further away."""
COPY = 0.5
"""How much of what a head sees at the anchor it adds to the residual stream."""


class _Readouts(NamedTuple):
    """Directions in a layer's input: `mask` · x is 1 on mask slots and 0 on real ones, `real` · x is 1 on real slots
    and -1 on mask slots."""

    mask: Tensor
    real: Tensor


@torch.no_grad()
def point_at_anchors(drafter: TrainableDrafter, batch: Batch, depth: int) -> None:
    """Let the first query head of the first key head in each layer but the first look at the anchor, for drafts of
    `depth` mask slots, and copy a part of what is there. `batch` is a sample."""
    ramp = _ramp(rotary_frequencies(drafter.shape.llama), depth, batch.ids.shape[1])
    for index, layer in enumerate(drafter.layer_list[1:], 1):
        slots = draft_slots(drafter, batch, all_kept(batch, depth), layers=index)
        real = slots[0].hidden[batch.answer]
        masks = torch.cat([slot.hidden[slot.wanted] for slot in slots[1:]])
        cast = layer.cast(real.dtype)
        readouts = _fit(cast.inputs(real, real).float(), cast.inputs(masks, masks).float())
        _set_head(layer, readouts, ramp.to(real.device))


def _fit(real: Tensor, masks: Tensor) -> _Readouts:
    """Ridge regression on inputs [n, H] of both kinds, each kind counting the same however many there are."""
    gram = real.t() @ real / len(real) + masks.t() @ masks / len(masks)
    gram.diagonal().add_(1e-3 * gram.diagonal().mean())
    means = torch.stack([real.mean(0), masks.mean(0)], 1)
    real_is_one, mask_is_one = torch.linalg.solve(gram, means).unbind(1)
    return _Readouts(mask_is_one, real_is_one - mask_is_one)


def _ramp(frequencies: Tensor, depth: int, length: int) -> Tensor:
    """The query [D] whose score with the key (1, …, 1, 0, …, 0), `distance` slots before it, falls from `NEAREST` by
    `STEP` a slot, and is level beyond twice the `depth`: a kink at the depth itself cannot be met with smooth waves.

    A pair (a, b) of the query scores a · cos(f · distance) - b · sin(f · distance) with the pair (1, 0) of the key.
    """
    distances = torch.arange(length, dtype=torch.float32)
    angles = distances[:, None] * frequencies
    waves = torch.cat([angles.cos(), -angles.sin()], 1)
    wanted = NEAREST - STEP * distances.clamp(max=2 * depth)
    # The distances that anchors have must be met closely; further away only the level matters.
    weights = torch.where(distances <= depth + 1, 1.0, 0.03)[:, None]
    weighted = waves * weights
    gram = weighted.t() @ weighted
    gram.diagonal().add_(1e-2)
    query: Tensor = torch.linalg.solve(gram, weighted.t() @ (wanted[:, None] * weights))
    return query[:, 0]


def _set_head(layer: Layer, readouts: _Readouts, ramp: Tensor) -> None:
    head = len(ramp)
    key = torch.zeros_like(ramp)
    key[: head // 2] = 1
    # Scores are divided by the root of the head's size.
    layer.q[:head] = torch.outer(ramp * head**0.5, readouts.mask)
    layer.k[:head] = torch.outer(key, readouts.real)
    orthonormal = torch.linalg.qr(torch.randn(layer.v.shape[1], head, device=layer.v.device))[0]
    layer.v[:head] = orthonormal.t()
    layer.o[:, :head] = COPY * orthonormal
