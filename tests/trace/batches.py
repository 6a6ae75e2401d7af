"""Batches made to measure: a drafter whose acceptance is known, on a machine whose costs are."""

import random
from collections.abc import Iterator, Sequence

from peagle_cli.trace.events import DraftBatch, Method, Token


def batch(
    drafted: int,
    accepted: int = 0,
    *,
    method: Method = "peagle",
    draft_s: float = 0.0,
    verify_s: float = 0.01,
    prefill: int = 0,
    clock_s: float = 0.0,
) -> DraftBatch:
    """One step whose tokens do not matter."""
    tokens = tuple(Token(i, "x") for i in range(drafted))
    return DraftBatch(
        lane="main",
        step=0,
        method=method,
        depth=drafted,
        drafted=tokens,
        accepted=accepted,
        bonus=Token(99, "y"),
        emitted=accepted + 1,
        draft_s=draft_s,
        verify_s=verify_s,
        clock_s=clock_s,
        prefill=prefill,
    )


class Machine:
    """Costs and acceptance by formula: the share of drafts that accept position i and all before it is `rates[i]`."""

    def __init__(self, rates: Sequence[float], *, base_s: float = 0.006, per_token_s: float = 0.0007) -> None:
        self.rates = rates
        self.base_s = base_s
        self.per_token_s = per_token_s

    def verify_s(self, depth: int) -> float:
        return self.base_s + self.per_token_s * depth

    def draft_s(self, method: Method, depth: int) -> float:
        return {"none": 0.0, "eagle3": 0.0008 * depth, "peagle": 0.0015 + 0.0001 * depth}[method]

    def speed(self, method: Method, depth: int) -> float:
        """Tokens per second, exactly."""
        return (1 + sum(self.rates[:depth])) / (self.draft_s(method, depth) + self.verify_s(depth))

    def run(self, method: Method, depth: int, steps: int = 4000, seed: int = 1) -> Iterator[DraftBatch]:
        """Steps whose acceptance is drawn."""
        chance = random.Random(seed)
        for _ in range(steps):
            luck = chance.random()
            accepted = sum(luck < rate for rate in self.rates[:depth])
            yield batch(
                depth,
                accepted,
                method=method,
                draft_s=self.draft_s(method, depth),
                verify_s=self.verify_s(depth),
            )
