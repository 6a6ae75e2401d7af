"""Acceptance on conversations that the target has answered greedily, without running the target again.

Where every accepted token is the true one, a draft sees the true tokens up to the first mistake, and that is all that
counts: so the drafts from all positions are made in one teacher-forced pass, and decoding is walked through them.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from peagle_cli.train.batch import Batch
from peagle_cli.train.eagle3 import unroll
from peagle_cli.train.loss import CHUNK
from peagle_cli.train.model import TrainableDrafter
from peagle_cli.train.peagle import all_kept, draft_slots


class Acceptance(NamedTuple):
    """How drafts of a depth fared: mean acceptance length, and the share accepted per position, as vLLM defines
    them."""

    length: float
    per_position: tuple[float, ...]


@torch.no_grad()
def draft_all(drafter: TrainableDrafter, batch: Batch, depth: int) -> Tensor:
    """The target ids [B, T, depth] drafted behind each real slot; -1 where no answer can be drafted from."""
    drafted = torch.full((*batch.ids.shape, depth), -1, device=batch.ids.device)
    if drafter.mask_hidden is None:
        for d, (hidden, anchors) in enumerate(unroll(drafter, batch, depth)):
            choice = _first_choices(drafter, hidden[:, -(len(anchors) - batch.first) :] if d == 0 else hidden)
            drafted[:, batch.first :, d] = choice
        return drafted
    for slots in draft_slots(drafter, batch, all_kept(batch, depth - 1)):
        where = slots.wanted.nonzero(as_tuple=True)
        drafted[where[0], slots.anchors[where], slots.depth] = _first_choices(drafter, slots.hidden[where])
    return drafted


def _first_choices(drafter: TrainableDrafter, hidden: Tensor) -> Tensor:
    """The target ids chosen at slots' outputs [..., H]."""
    head = drafter.lm_head.to(hidden.dtype)
    rows = drafter.outputs(hidden).flatten(0, -2)
    choices = torch.cat([F.linear(chunk, head).max(-1).indices for chunk in rows.split(CHUNK)])
    return drafter.draft_ids[choices].view(hidden.shape[:-1])


def acceptance_by_depth(
    drafter: TrainableDrafter, batches: Iterable[Batch], depths: Sequence[int]
) -> dict[int, Acceptance]:
    """Walk greedy decoding at each of `depths` through the answers of `batches`."""
    accepted: dict[int, list[int]] = {depth: [] for depth in depths}
    for batch in batches:
        drafted = draft_all(drafter, batch, max(depths))
        for ids, answer, drafts in zip(batch.ids.tolist(), batch.answer.tolist(), drafted.tolist(), strict=True):
            for depth in depths:
                accepted[depth] += walk(ids, answer, drafts, depth)
    return {depth: _figures(counts, depth) for depth, counts in accepted.items()}


def _figures(accepted: Sequence[int], depth: int) -> Acceptance:
    drafts = max(len(accepted), 1)
    return Acceptance(
        1 + sum(accepted) / drafts, tuple(sum(count > i for count in accepted) / drafts for i in range(depth))
    )


def walk(ids: Sequence[int], answer: Sequence[bool], drafted: Sequence[Sequence[int]], depth: int) -> list[int]:
    """How many tokens each step of greedy decoding accepts, given the drafts [T, ≥ depth] behind every real slot.

    `answer` marks the positions whose next token belongs to the answer. The first of those tokens comes from the
    prefill.
    """
    first = answer.index(True)
    end = len(answer) - answer[::-1].index(True)  # the answer's last token stands here
    accepted = []
    slot = first
    while slot + 2 <= end:
        count = 0
        while count < depth and slot + 2 + count <= end and drafted[slot][count] == ids[slot + 2 + count]:
            count += 1
        accepted.append(count)
        slot += count + 1
    return accepted
