import math

import msgspec

from peagle_cli.trace.events import Candidate, DraftBatch, TargetView, Token
from peagle_cli.trace.lossless import ROUNDING, check
from tests.trace.batches import batch


def choice(id: int, *probs: tuple[int, float]) -> DraftBatch:
    """A plain step that chose `id` where the target's candidates were `probs`."""
    return _with_bonus(batch(0), id, probs)


def _with_bonus(step: DraftBatch, id: int, probs: tuple[tuple[int, float], ...]) -> DraftBatch:
    candidates = tuple(Candidate(token, f"t{token}", prob) for token, prob in probs)
    prob = next(candidate.prob for candidate in candidates if candidate.id == id)
    return msgspec.structs.replace(step, bonus=Token(id, f"t{id}", prob, candidates))


def accepts(id: int, *probs: tuple[int, float]) -> DraftBatch:
    """A step that accepted the draft `id` where the target's candidates were `probs`, and then chose 9."""
    step = _with_bonus(batch(1, 1), 9, ((9, 0.9), (8, 0.1)))
    candidates = tuple(Candidate(token, f"t{token}", prob) for token, prob in probs)
    prob = next(candidate.prob for candidate in candidates if candidate.id == id)
    return msgspec.structs.replace(step, drafted=(Token(id, f"t{id}"),), target=(TargetView(prob, candidates),))


FIRST = choice(1, (1, 0.9), (2, 0.1))
NINE = choice(9, (9, 0.9), (8, 0.1))


def test_the_same_tokens_are_lossless_however_they_were_batched() -> None:
    plain = [FIRST, choice(3, (3, 0.6), (4, 0.4)), NINE]
    assert check(plain, plain, "float32") is None
    assert check(plain, [FIRST, accepts(3, (3, 0.61), (4, 0.39))], "float32") is None


def test_a_small_move_between_two_passes_is_a_tie_in_bfloat16_only() -> None:
    plain = [FIRST, choice(3, (3, 0.42), (4, 0.40)), NINE]
    lane = [FIRST, accepts(4, (4, 0.43), (3, 0.41))]
    found = check(plain, lane, "bfloat16")
    assert found is not None
    assert (found.verdict, found.position, found.step) == ("rounding tie", 1, 0)
    assert found.plain and found.plain.id == 3
    assert found.lane.id == 4
    assert found.moved is not None
    assert math.isclose(found.moved, math.log(0.42 / 0.40) + math.log(0.43 / 0.41))
    in_float32 = check(plain, lane, "float32")
    assert in_float32 is not None
    assert in_float32.verdict == "NOT LOSSLESS"


def test_a_large_move_is_no_rounding() -> None:
    plain = [FIRST, choice(3, (3, 0.8), (4, 0.1)), NINE]
    found = check(plain, [FIRST, accepts(4, (4, 0.7), (3, 0.2))], "bfloat16")
    assert found is not None
    assert found.verdict == "NOT LOSSLESS"
    assert found.moved is not None
    assert found.moved > ROUNDING["bfloat16"]


def test_a_token_that_the_other_pass_did_not_even_consider_is_no_tie() -> None:
    plain = [FIRST, choice(3, (3, 0.5), (5, 0.1)), NINE]
    found = check(plain, [FIRST, accepts(4, (4, 0.5), (3, 0.4))], "bfloat16")
    assert found is not None
    assert found.verdict == "NOT LOSSLESS"
    assert found.in_plain is not None
    assert found.in_plain.lane_token is None


def test_a_draft_that_its_own_pass_did_not_prefer_is_lossy_even_behind_a_tie() -> None:
    plain = [FIRST, choice(3, (3, 0.42), (4, 0.40)), NINE]
    lane = [FIRST, accepts(4, (4, 0.43), (3, 0.41)), accepts(6, (7, 0.41), (6, 0.40))]
    found = check(plain, lane, "bfloat16")
    assert found is not None
    assert (found.verdict, found.position) == ("NOT LOSSLESS", 3)
    assert "preferred 't7'" in found.reason


def test_equal_logits_are_first_choices_both() -> None:
    plain = [choice(2, (1, 0.5), (2, 0.5))]
    assert check(plain, plain, "float32") is None
