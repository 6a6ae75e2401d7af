"""The P-EAGLE objective: conditional drop-token sampling (COD), all of a draft's slots in one pass.

Every draft slot is a mask slot: one shared embedding, one learned hidden state. Which draft slots there are is told by
`kept` [B, T]: real slot a is the anchor of the draft slots (a, 1) … (a, kept[a]). A slot thus never lacks the ones
before it in its own draft, which is what "conditional" means.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from peagle_cli.train.attention import Part, attend, causal_parts
from peagle_cli.train.batch import Batch
from peagle_cli.train.model import TrainableDrafter


class Slots(NamedTuple):
    """Outputs [B, n, H] of slots of one depth, their anchors [B, n], and which of them are wanted [B, n]: sequences
    with fewer anchors than others are filled up."""

    depth: int
    hidden: Tensor
    anchors: Tensor
    wanted: Tensor


def sample_kept(batch: Batch, depth: int, ratio: float, generator: torch.Generator) -> Tensor:
    """COD sampling: of the slots that an answer can be drafted from, a share of ratio^d, drawn anew each time, keeps
    d mask slots, for d up to `depth`."""
    anchors = _possible_anchors(batch)
    draws = torch.rand(anchors.shape, generator=generator).to(anchors.device)
    rank = draws.masked_fill(~anchors, 2).argsort(1).argsort(1)
    count = anchors.sum(1, keepdim=True)
    kept = torch.zeros_like(batch.ids)
    for d in range(1, depth + 1):
        kept += rank < (count * ratio**d).round()
    return kept.masked_fill(~anchors, 0)


def all_kept(batch: Batch, depth: int) -> Tensor:
    """Every slot that an answer can be drafted from, with `depth` mask slots."""
    return _possible_anchors(batch) * depth


def _possible_anchors(batch: Batch) -> Tensor:
    """Slots whose own prediction and whose draft's first mask slot's belong to the answer."""
    return F.pad(batch.answer[:, 1:-1] & batch.answer[:, 2:], (0, 2))


def draft_slots(
    drafter: TrainableDrafter, batch: Batch, kept: Tensor, real: int | None = None, layers: int | None = None
) -> list[Slots]:
    """Run real slots and mask slots in one pass, through the first `layers` layers (None: all).

    The first `Slots` are the real ones, at depth 0; slot (a, d) predicts the token behind position a + d + 1. `real` is
    how many real slots there are (None: as many as tokens); anchors must be among them.
    """
    count, length = len(batch.ids), real or batch.ids.shape[1]
    order = kept.argsort(dim=1, descending=True, stable=True)
    ranked = kept.gather(1, order)
    counts = [int((ranked >= d).sum(1).max()) for d in range(1, int(kept.max()) + 1)]
    positions = torch.arange(length, device=kept.device).expand(count, -1)
    # The fill-up of short rows must not point behind the real slots.
    anchors = [order[:, :n].clamp(max=length - 1) for n in counts]
    embed, mask_hidden = drafter.mask_slot()
    masks = sum(counts)
    tokens = F.pad(batch.ids[:, 1:], (0, 1))[:, :length]
    embeds = torch.cat([drafter.embed(tokens), embed.expand(count, masks, -1)], 1)
    hidden = torch.cat([drafter.fuse(batch.aux[:, :length]), mask_hidden.expand(count, masks, -1)], 1)
    hidden = _run(drafter, embeds, hidden, positions, anchors, layers)
    parts = hidden.split([length, *counts], 1)
    slots = [Slots(0, parts[0], positions, torch.ones_like(positions, dtype=torch.bool))]
    for d, (part, anchor) in enumerate(zip(parts[1:], anchors, strict=True), 1):
        slots.append(Slots(d, part, anchor, ranked[:, : anchor.shape[1]] >= d))
    return slots


def _run(
    drafter: TrainableDrafter,
    embeds: Tensor,
    hidden: Tensor,
    real: Tensor,
    anchors: Sequence[Tensor],
    layers: int | None,
) -> Tensor:
    """The real slots at positions `real` [B, T], followed by the mask slots, depth after depth, of `anchors` [B, n];
    the anchors of a depth are the first ones of the depth before."""
    length = real.shape[1]
    rotation = drafter.rotation(torch.cat([real, *(anchor + d for d, anchor in enumerate(anchors, 1))], 1))
    parts = _parts(drafter.mask(length), anchors)
    for layer in drafter.cast_layers()[:layers]:
        heads = layer.heads(layer.inputs(embeds, hidden), rotation)
        hidden = layer.finish(hidden, attend(*heads, parts))
    return hidden


def _parts(mask: Tensor, anchors: Sequence[Tensor]) -> list[Part]:
    """What the real slots, whose mask is `mask` [T, T], and the mask slots of `anchors` see."""
    length = len(mask)
    parts = list(causal_parts(mask, 0, length, kept=False))
    start, own = length, list[int]()
    for anchor in anchors:
        own.append(start)
        stop = start + anchor.shape[1]
        parts.append(Part(start, stop, length, mask[anchor], tuple(own)))
        start = stop
    return parts
