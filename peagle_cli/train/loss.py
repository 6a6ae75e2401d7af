"""Soft cross-entropy against the target's own distribution, over the draft vocabulary.

The target's distribution at a position is the aim of every slot that predicts the token behind it, in whatever draft.
So the distributions are computed once per position, and looked up.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from peagle_cli.train.batch import Batch
from peagle_cli.train.model import TargetHead, TrainableDrafter

CHUNK = 256
"""Rows whose scores are turned into gradients at a time: on a CPU, as many as its cache holds."""
BLOCK = 4 * CHUNK
"""Rows whose gradients exist at a time. Bounds memory; the head's gradient is a sum over blocks."""


class SoftTargets(NamedTuple):
    """The target's probabilities [P, Vd] and its first choices [P] at the learnable positions; `row` [B, T] finds them,
    -1 where there is nothing to learn."""

    probs: Tensor
    choice: Tensor
    row: Tensor

    @classmethod
    @torch.no_grad()
    def of(cls, batch: Batch, head: TargetHead) -> "SoftTargets":
        """For all learnable positions of a batch."""
        where = batch.learnable.nonzero(as_tuple=True)
        aux = batch.aux[where]
        probs = torch.cat([head.logits(chunk).softmax(-1) for chunk in aux.split(CHUNK)])
        row = torch.full_like(batch.ids, -1)
        row[where] = torch.arange(len(probs), device=row.device)
        return cls(probs, probs.max(-1).indices, row)

    def at(self, positions: Tensor) -> Tensor:
        """The rows of `probs` for `positions` [B, n]; -1 where there is nothing to learn, or behind the end."""
        rows = self.row.gather(1, positions.clamp(max=self.row.shape[1] - 1))
        return rows.masked_fill(positions >= self.row.shape[1], -1)


class Learnt(NamedTuple):
    """What slots at one depth came to: the sum of their losses, how many there were, and how many chose as the
    target."""

    loss: float
    slots: int
    agreed: int

    def plus(self, other: "Learnt") -> "Learnt":
        """Both together."""
        return Learnt(self.loss + other.loss, self.slots + other.slots, self.agreed + other.agreed)


class Aimed(NamedTuple):
    """Slots' outputs [n, H] before the final norm, and the rows [n] of the soft targets that they aim at."""

    hidden: Tensor
    rows: Tensor

    @classmethod
    def of(cls, hidden: Tensor, positions: Tensor, wanted: Tensor, targets: SoftTargets) -> "Aimed":
        """Those of the slots `hidden` [B, n, H] that are `wanted` [B, n] and have something to learn at `positions`
        [B, n]."""
        rows = targets.at(positions)
        where = (wanted & (rows >= 0)).nonzero(as_tuple=True)
        return cls(hidden[where], rows[where])


def learn(
    drafter: TrainableDrafter, parts: Sequence[Aimed], weights: Sequence[float], targets: SoftTargets
) -> tuple[Tensor, list[Learnt]]:
    """The sum of all slots' losses, each counting as much as `weights` says of its part, and what each part came to.

    All parts at once: the head's gradient, as large as the head, is then formed once.
    """
    sizes = [len(part.rows) for part in parts]
    outputs = drafter.outputs(torch.cat([part.hidden for part in parts]))
    rows = torch.cat([part.rows for part in parts])
    per_slot = torch.tensor(weights, device=rows.device).repeat_interleave(torch.tensor(sizes, device=rows.device))
    total, losses, agreed = _soft_cross_entropy(outputs, drafter.lm_head, per_slot, targets, rows)
    figures = zip(losses.split(sizes), agreed.split(sizes), sizes, strict=True)
    return total, [Learnt(float(loss.sum()), size, int(hits.sum())) for loss, hits, size in figures]


def _soft_cross_entropy(
    outputs: Tensor, weight: Tensor, per_slot: Tensor, targets: SoftTargets, rows: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    apply: Callable[..., tuple[Tensor, Tensor, Tensor]] = _SoftCrossEntropy.apply
    return apply(outputs, weight, per_slot, targets.probs, targets.choice, rows)


class _SoftCrossEntropy(Function):
    """-Σ p · log softmax(outputs Wᵀ) per slot and, weighted, of all slots, with the gradients formed in the forward
    pass: the scores, by far the largest tensors of a step, are never kept."""

    @staticmethod
    def forward(
        ctx: Any, outputs: Tensor, weight: Tensor, per_slot: Tensor, probs: Tensor, choice: Tensor, rows: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        matrix = weight.to(outputs.dtype)
        grad_outputs = torch.empty_like(outputs)
        grad_weight = torch.zeros_like(weight)
        losses = torch.empty(len(outputs), device=outputs.device)
        agreed = torch.empty(len(outputs), dtype=torch.bool, device=outputs.device)
        block = outputs.new_empty(min(BLOCK, len(outputs)), len(weight))
        for begin in range(0, len(outputs), BLOCK):
            end = min(begin + BLOCK, len(outputs))
            grad = block[: end - begin]
            for start in range(begin, end, CHUNK):
                span = slice(start, min(start + CHUNK, end))
                losses[span], agreed[span] = _score_gradient(
                    outputs[span] @ matrix.t(), probs[rows[span]], choice[rows[span]], grad[start - begin :][:CHUNK]
                )
            grad_outputs[begin:end] = grad @ matrix
            grad_weight += grad.t() @ (outputs[begin:end] * per_slot[begin:end, None]).to(outputs.dtype)
        ctx.save_for_backward(grad_outputs.mul_(per_slot[:, None]), grad_weight)
        ctx.mark_non_differentiable(losses, agreed)
        return losses @ per_slot, losses, agreed

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        grad_outputs, grad_weight = ctx.saved_tensors
        return grad_outputs * grads[0], grad_weight.mul_(grads[0]), None, None, None, None


def _score_gradient(scores: Tensor, wanted: Tensor, choice: Tensor, out: Tensor) -> tuple[Tensor, Tensor]:
    """Losses [n] of rows of scores against the probabilities `wanted`, both [n, Vd], and whether they agree on the
    first `choice` [n]. The losses' gradients, softmax - wanted, go to `out` [n, Vd]."""
    torch.softmax(scores, -1, out=out)
    chosen = scores.gather(-1, choice[:, None]).float()
    agreed = chosen[:, 0] == scores.amax(-1).float()
    total = chosen - out.gather(-1, choice[:, None]).float().log()  # log Σ exp scores, read off one probability
    out -= wanted
    expected = wanted.mul_(scores).sum(-1, dtype=torch.float32)
    return total[:, 0] - expected, agreed  # the probabilities of a row sum to 1
