"""Soft cross-entropy against the target's own distribution, over the draft vocabulary.

The target's distribution at a position is the aim of every slot that predicts the token behind it, in whatever draft.
So the distributions are computed once per position, and looked up.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from peagle_cli.train.batch import Batch
from peagle_cli.train.model import TargetHead, TrainableDrafter

CHUNK = 256
"""Rows whose scores exist at a time. Bounds memory, and on a CPU keeps a chunk's scores in the cache."""


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
        probs = torch.cat([head.logits(chunk).float().softmax(-1).to(aux.dtype) for chunk in aux.split(CHUNK)])
        row = torch.full_like(batch.ids, -1)
        row[where] = torch.arange(len(probs), device=row.device)
        return cls(probs, probs.argmax(-1), row)


class Learnt(NamedTuple):
    """What slots at one depth came to: the sum of their losses, how many there were, and how many chose as the
    target."""

    loss: Tensor
    slots: int
    agreed: int

    def plus(self, other: "Learnt") -> "Learnt":
        """Both together, as figures only."""
        return Learnt(self.loss.detach() + other.loss.detach(), self.slots + other.slots, self.agreed + other.agreed)

    def detached(self) -> "Learnt":
        """The same as figures only."""
        return Learnt(self.loss.detach(), self.slots, self.agreed)


def learn(
    drafter: TrainableDrafter, hidden: Tensor, sequences: Tensor, positions: Tensor, targets: SoftTargets
) -> Learnt:
    """Hold slots' outputs `hidden` [N, H] against the target at `positions` of `sequences`, [N] each.

    Slots whose position is not learnable, or lies behind the end, are left out.
    """
    inside = positions < targets.row.shape[1]
    rows = targets.row[sequences, positions.clamp(max=targets.row.shape[1] - 1)]
    chosen = ((rows >= 0) & inside).nonzero()[:, 0]
    rows = rows[chosen]
    loss, agreed = _soft_cross_entropy(drafter.outputs(hidden[chosen]), drafter.lm_head, targets, rows)
    return Learnt(loss, len(rows), int(agreed))


def _soft_cross_entropy(outputs: Tensor, weight: Tensor, targets: SoftTargets, rows: Tensor) -> tuple[Tensor, Tensor]:
    apply: Callable[..., tuple[Tensor, Tensor]] = _SoftCrossEntropy.apply
    return apply(outputs, weight, targets.probs, targets.choice, rows)


class _SoftCrossEntropy(Function):
    """-Σ p · log softmax(outputs Wᵀ), with the gradients formed chunk by chunk in the forward pass: the scores, by far
    the largest tensors of a step, are never kept."""

    @staticmethod
    def forward(
        ctx: Any, outputs: Tensor, weight: Tensor, probs: Tensor, choice: Tensor, rows: Tensor
    ) -> tuple[Tensor, Tensor]:
        matrix = weight.to(outputs.dtype)
        grad_outputs = torch.empty_like(outputs)
        grad_weight = torch.zeros_like(weight)
        loss = torch.zeros((), device=outputs.device)
        agreed = torch.zeros((), dtype=torch.long, device=outputs.device)
        for start in range(0, len(outputs), CHUNK):
            chunk, row = outputs[start : start + CHUNK], rows[start : start + CHUNK]
            scores = (chunk @ matrix.t()).float()
            p = probs[row].float()
            best = scores.amax(-1, keepdim=True)
            agreed += (scores.gather(-1, choice[row, None]) == best).sum()
            expected = (p * scores).sum()
            mass = scores.sub_(best).exp_()
            total = mass.sum(-1, keepdim=True)
            loss += (best + total.log()).sum() - expected  # the probabilities of a row sum to 1
            grad = mass.div_(total).sub_(p).to(outputs.dtype)
            grad_outputs[start : start + CHUNK] = grad @ matrix
            grad_weight += grad.t() @ chunk
        ctx.save_for_backward(grad_outputs, grad_weight)
        ctx.mark_non_differentiable(agreed)
        return loss, agreed

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        grad_outputs, grad_weight = ctx.saved_tensors
        return grad_outputs * grads[0], grad_weight * grads[0], None, None, None
