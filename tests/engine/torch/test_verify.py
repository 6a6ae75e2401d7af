"""The acceptance rules: exact in greedy decoding, the target's distribution when sampled."""

from collections import Counter
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from peagle_cli.engine.torch.verify import Verdict, verify_greedy, verify_sampled

TRIALS = 8_000


@pytest.mark.parametrize(
    ("drafts", "choices", "accepted", "bonus"),
    [
        ([], [4], 0, 4),
        ([1, 2, 3], [1, 2, 3, 9], 3, 9),
        ([1, 2, 3], [1, 7, 3, 9], 1, 7),
        ([1, 2, 3], [5, 2, 3, 9], 0, 5),
    ],
)
def test_greedy(drafts: list[int], choices: list[int], accepted: int, bonus: int) -> None:
    assert verify_greedy(drafts, choices) == Verdict(accepted, bonus)


def first_two_tokens(draft: Callable[[torch.Generator], tuple[list[int], Tensor | None]], p: Tensor) -> Counter[str]:
    """What two positions of verified drafting emit, over many trials (the second is drawn anew after an early end)."""
    generator = torch.Generator().manual_seed(11)
    seen: Counter[str] = Counter()
    for _ in range(TRIALS):
        drafts, q = draft(generator)
        verdict = verify_sampled(drafts, p.__getitem__, q, generator)
        tokens = [*drafts[: verdict.accepted], verdict.bonus]
        if len(tokens) == 1:
            tokens.append(verify_sampled([], p[1:].__getitem__, None, generator).bonus)
        seen[f"{tokens[0]} {tokens[1]}"] += 1
    return seen


def chi_square(seen: Counter[str], p: Tensor) -> float:
    """Pearson's statistic of pairs of independent tokens with the distributions `p[0]` and `p[1]`."""
    joint = torch.outer(p[0], p[1])
    total = 0.0
    for i in range(joint.shape[0]):
        for j in range(joint.shape[1]):
            expected = float(joint[i, j]) * TRIALS
            if expected == 0:
                assert seen[f"{i} {j}"] == 0
            else:
                total += (seen[f"{i} {j}"] - expected) ** 2 / expected
    return total


P = torch.tensor([[0.5, 0.2, 0.2, 0.1, 0.0], [0.1, 0.1, 0.3, 0.1, 0.4], [0.2, 0.2, 0.2, 0.2, 0.2]])
Q = torch.tensor([[0.1, 0.6, 0.1, 0.1, 0.1], [0.3, 0.0, 0.3, 0.1, 0.3]])


# Twenty pairs have a probability above zero: 19 degrees of freedom, 43.8 at one in a thousand.
def test_first_choice_drafts_follow_the_target() -> None:
    assert chi_square(first_two_tokens(lambda _: ([1, 4], None), P), P) < 43.8


def test_sampled_drafts_follow_the_target() -> None:
    def draft(generator: torch.Generator) -> tuple[list[int], Tensor]:
        return torch.multinomial(Q, 1, generator=generator).squeeze(-1).tolist(), Q

    assert chi_square(first_two_tokens(draft, P), P) < 43.8


def test_a_perfect_drafter_is_never_rejected() -> None:
    generator = torch.Generator().manual_seed(5)
    for _ in range(500):
        drafts = torch.multinomial(P[:2], 1, generator=generator).squeeze(-1).tolist()
        assert verify_sampled(drafts, P.__getitem__, P[:2], generator).accepted == 2


def test_thresholds_are_the_numbers_that_decided() -> None:
    for seed in range(50):
        verdict = verify_sampled([0, 2], P.__getitem__, None, torch.Generator().manual_seed(seed))
        passed = [u < float(P[i, d]) for i, (u, d) in enumerate(zip(verdict.thresholds, [0, 2], strict=False))]
        assert sum(passed) == verdict.accepted
        assert len(verdict.thresholds) == min(verdict.accepted + 1, 2)


def test_a_seed_reproduces_the_verdict() -> None:
    verdicts = [verify_sampled([0, 2], P.__getitem__, None, torch.Generator().manual_seed(9)) for _ in range(2)]
    assert verdicts[0] == verdicts[1]
