"""Attention of real and draft slots: against the plain computation, with one mask of all slots by all slots."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from peagle_cli.train import attention
from peagle_cli.train.attention import Part, attend, causal_parts

LENGTH, DRAFTS = 11, 5
ANCHORS = torch.tensor([[4, 0, 9, 7, 2], [1, 10, 3, 3, 8]])
CAUSAL = torch.full((LENGTH, LENGTH), -torch.inf, dtype=torch.float64).triu_(1)


def plain(queries: Tensor, keys: Tensor, values: Tensor, visible: Tensor) -> Tensor:
    """Softmax attention; `visible` [B, S, K]."""
    group = queries.shape[2] // keys.shape[2]
    keys, values = (slots.repeat_interleave(group, 2) for slots in (keys, values))
    scores = torch.einsum("bqhd,bkhd->bhqk", queries, keys) * queries.shape[-1] ** -0.5
    return torch.einsum("bhqk,bkhd->bqhd", scores.masked_fill(~visible[:, None], -torch.inf).softmax(-1), values)


def packed() -> tuple[list[Part], Tensor]:
    """Real slots, then two slots of each of five drafts, as P-EAGLE has them."""
    first, second = LENGTH, LENGTH + DRAFTS
    parts = [
        *causal_parts(CAUSAL, 0, LENGTH, kept=False),
        Part(first, second, LENGTH, CAUSAL[ANCHORS], (first,)),
        Part(second, second + DRAFTS, LENGTH, CAUSAL[ANCHORS], (first, second)),
    ]
    visible = torch.zeros(2, second + DRAFTS, second + DRAFTS, dtype=torch.bool)
    visible[:, :, :LENGTH] = torch.cat([CAUSAL.expand(2, -1, -1), CAUSAL[ANCHORS], CAUSAL[ANCHORS]], 1) == 0
    one = torch.eye(DRAFTS, dtype=torch.bool)
    visible[:, first:second, first:second] = one
    visible[:, second:, first:] = torch.cat([one, one], 1)
    return parts, visible


def unrolled() -> tuple[list[Part], Tensor]:
    """The second slots of drafts behind neighbouring real slots, as EAGLE-3 has them."""
    count = LENGTH - 2
    parts = list(causal_parts(CAUSAL, 2, LENGTH, [LENGTH, LENGTH + count], kept=True))
    one = torch.eye(count, dtype=torch.bool)
    return parts, torch.cat([CAUSAL[2:] == 0, one, one], 1).expand(2, -1, -1)


@pytest.mark.parametrize("layout", [packed, unrolled])
def test_it_is_plain_attention_with_gradients(
    layout: Callable[[], tuple[list[Part], Tensor]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attention, "BLOCK", 4)
    parts, visible = layout()
    torch.manual_seed(0)
    queries = torch.randn(2, visible.shape[1], 4, 6, dtype=torch.float64, requires_grad=True)
    keys, values = (torch.randn(2, visible.shape[2], 2, 6, dtype=torch.float64, requires_grad=True) for _ in range(2))
    mixed, wanted = attend(queries, keys, values, parts), plain(queries, keys, values, visible)
    torch.testing.assert_close(mixed, wanted)
    direction = torch.randn_like(wanted)
    inputs = (queries, keys, values)
    for mine, right in zip(*(torch.autograd.grad(out, inputs, direction) for out in (mixed, wanted)), strict=True):
        torch.testing.assert_close(mine, right)
