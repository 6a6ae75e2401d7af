"""One training step's losses and gradients, for either method."""

import torch
import torch.nn.functional as F
from torch import Tensor

from peagle_cli.train.batch import Batch
from peagle_cli.train.eagle3 import PASS_WEIGHT, unroll
from peagle_cli.train.loss import Aimed, Learnt, SoftTargets, learn
from peagle_cli.train.model import TrainableDrafter
from peagle_cli.train.partition import segments
from peagle_cli.train.peagle import draft_slots, sample_kept
from peagle_cli.train.settings import Settings


def backward(
    drafter: TrainableDrafter, batch: Batch, targets: SoftTargets, settings: Settings, generator: torch.Generator
) -> list[Learnt]:
    """Add a batch's gradients to the drafter's; what was learnt at each draft position, the anchor's own first."""
    if settings.method == "eagle3":
        return _backward_eagle3(drafter, batch, targets, settings.train_depth)
    kept = sample_kept(batch, settings.train_depth - 1, settings.keep, generator)
    return _backward_peagle(drafter, batch, targets, kept, settings.segment)


def _backward_eagle3(drafter: TrainableDrafter, batch: Batch, targets: SoftTargets, passes: int) -> list[Learnt]:
    """The mean loss of each pass, weighted."""
    parts = []
    for step, (hidden, anchors) in enumerate(unroll(drafter, batch, passes)):
        positions = (anchors + step + 1).expand(len(batch.ids), -1)
        parts.append(Aimed.of(hidden, positions, torch.ones_like(positions, dtype=torch.bool), targets))
    weights = [PASS_WEIGHT**step / max(len(part.rows), 1) for step, part in enumerate(parts)]
    total, learnt = learn(drafter, parts, weights, targets)
    total.backward()
    return learnt


def _backward_peagle(
    drafter: TrainableDrafter, batch: Batch, targets: SoftTargets, kept: Tensor, size: int
) -> list[Learnt]:
    """The mean loss of all slots, whatever their depth, a segment of `size` real slots at a time."""
    weight = 1 / _count_slots(batch, kept)
    learnt = [Learnt(0.0, 0, 0)] * (int(kept.max()) + 1)
    for segment in segments(kept, size):
        parts = []
        for slots in draft_slots(drafter, batch, segment.kept, segment.right):
            own = slots.wanted & (slots.anchors >= segment.left) if slots.depth == 0 else slots.wanted
            parts.append(Aimed.of(slots.hidden, slots.anchors + slots.depth + 1, own, targets))
        total, found = learn(drafter, parts, [weight] * len(parts), targets)
        total.backward()
        for depth, part in enumerate(found):
            learnt[depth] = learnt[depth].plus(part)
    return learnt


def _count_slots(batch: Batch, kept: Tensor) -> int:
    """How many slots have something to learn: those at depth 0, and the mask slots `kept`."""
    learnable = F.pad(batch.learnable, (0, int(kept.max()) + 1))
    length = kept.shape[1]
    wanted = (learnable[:, d + 1 : d + 1 + length] & (kept >= d) for d in range(int(kept.max()) + 1))
    return max(sum(int(slots.sum()) for slots in wanted), 1)
