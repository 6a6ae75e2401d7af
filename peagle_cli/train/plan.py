"""In which order conversations are seen: batches of similar length, the same for the same seed and epoch."""

import random
from collections.abc import Sequence

from peagle_cli.train.states import SHARD

GROUP = 4
"""Shards whose conversations are mixed: bounds how much is open at a time, and lets an epoch begin before all states
are computed."""


def epoch_plan(lengths: Sequence[int], batch_tokens: int, seed: int, epoch: int) -> list[list[int]]:
    """Batches of conversation indices, each conversation once. A batch's longest times its size is at most
    `batch_tokens`, or it is a single conversation."""
    # A string seeds the same everywhere; Python's hash of a tuple need not.
    rng = random.Random(f"{seed} {epoch}")
    shards = [range(start, min(start + SHARD, len(lengths))) for start in range(0, len(lengths), SHARD)]
    rng.shuffle(shards)
    plan = []
    for start in range(0, len(shards), GROUP):
        group = [index for shard in shards[start : start + GROUP] for index in shard]
        rng.shuffle(group)
        batches = _batches(sorted(group, key=lambda index: lengths[index]), lengths, batch_tokens)
        rng.shuffle(batches)
        plan += batches
    return plan


def _batches(ascending: Sequence[int], lengths: Sequence[int], batch_tokens: int) -> list[list[int]]:
    batches: list[list[int]] = []
    for index in ascending:
        if batches and lengths[index] * (len(batches[-1]) + 1) <= batch_tokens:
            batches[-1].append(index)
        else:
            batches.append([index])
    return batches
