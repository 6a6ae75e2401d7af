"""Why a token was kept or not, in words and numbers that can be checked by hand."""

import math

import pytest

from peagle_cli.trace.events import Candidate, DraftBatch, Sampling, TargetView, Token
from peagle_cli.trace.inspection import entropy, inspect, places

GREEDY = Sampling()
MERGE, JOIN = Candidate(1, " merge", 0.7), Candidate(2, " join", 0.2)


def step(threshold: float | None = None) -> DraftBatch:
    """Of three drafts the second is rejected."""
    drafted = (Token(2, " join", 0.5, (JOIN, MERGE)), Token(1, " merge", 0.4, (MERGE, JOIN)), Token(3, "!"))
    views = (
        TargetView(0.9, (JOIN,), threshold and 0.1),
        TargetView(0.2, (JOIN, MERGE), threshold),
        TargetView(0.0, (JOIN,)),
    )
    return DraftBatch(
        "chat", 4, "peagle", 3, drafted, 1, Token(2, " join", 0.7, (JOIN,)), 2, 0.002, 0.01, 1.0, 0, views
    )


def test_tells_what_became_of_every_token_of_a_step() -> None:
    seen = [inspect(step(), place, GREEDY) for place in range(places(step()))]
    assert [each.fate for each in seen] == ["accepted", "rejected", "discarded", "correction"]
    assert seen[1].behind == 1
    assert seen[1].reason == "The target's first choice is “ join”. The target gives the draft 20.0%."
    assert "behind “ merge”" in seen[2].reason
    assert (seen[1].drafter, seen[1].target) == ((MERGE, JOIN), (JOIN, MERGE))
    assert (seen[3].q, seen[3].p) == (0.2, 0.7), "what the drafter thought of the target's token"
    assert seen[0].seconds_per_token == pytest.approx(0.006)


def test_gives_the_numbers_of_the_test_when_sampling() -> None:
    told = inspect(step(0.6), 1, Sampling(temperature=1.0)).reason
    assert told == "Drawn u = 0.600 ≥ 0.200 = p, for the draft was the drafter's only choice."
    told = inspect(step(0.6), 1, Sampling(temperature=1.0, drafts="sampled")).reason
    assert told == "Drawn u = 0.600 ≥ 0.500 = min(1, p / q) = min(1, 0.200 / 0.400)."


def test_a_step_without_drafts_has_the_targets_token_only() -> None:
    plain = DraftBatch("chat", 1, "none", 0, (), 0, Token(1, "a"), 1, 0.0, 0.01, 1.0)
    assert places(plain) == 1
    seen = inspect(plain, 0, GREEDY)
    assert (seen.fate, seen.drafter, seen.target) == ("plain", (), ())


def test_the_entropy_of_the_likeliest_alone_is_a_lower_bound() -> None:
    probs = [0.5, 0.25, 0.125, 0.0625, 0.0625]
    whole = [Candidate(i, "", prob) for i, prob in enumerate(probs)]
    exact = -sum(prob * math.log2(prob) for prob in probs)
    seen = entropy(whole)
    assert seen is not None and seen.exact and seen.bits == pytest.approx(exact)
    for known in range(1, 5):
        seen = entropy(whole[:known])
        assert seen is not None and not seen.exact and 0 < seen.bits <= exact
    assert entropy([]) is None


def test_names_a_special_token_which_adds_nothing_to_the_text() -> None:
    end = Token(0, "", 0.6, (Candidate(0, "<|im_end|>", 0.6), MERGE))
    step = DraftBatch("chat", 4, "peagle", 1, (Token(1, " merge"),), 0, end, 1, 0.002, 0.01, 1.0)
    assert inspect(step, 0, GREEDY).reason == "The target's first choice is “<|im_end|>”."
