"""Sequence partition (P-EAGLE, Algorithm 1): long sequences a segment at a time, with the gradients of the whole.

A segment spans some real slots. Real slots and their predictions belong to the segment that they are in; the mask
slots of anchor a all belong to the segment of a + 1, so that a draft is never cut. A segment's pass has its own mask
slots and, because they look back, all real slots up to its right bound. What is learnt is disjoint, so the segments'
gradients add up to those of the whole sequence, while scores exist for one segment's mask slots only.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor


class Segment(NamedTuple):
    """The real slots `left` … `right` - 1, and the mask slots kept [B, T] that go with them."""

    left: int
    right: int
    kept: Tensor


def segments(kept: Tensor, size: int) -> Iterator[Segment]:
    """Cut sequences whose mask slots are `kept` [B, T] into segments of `size` real slots."""
    length = kept.shape[1]
    following = torch.arange(1, length + 1, device=kept.device)
    for left in range(0, length, size):
        right = min(left + size, length)
        yield Segment(left, right, kept * ((left <= following) & (following < right)))
