"""Whether speculative decoding said what plain decoding says, judged from events that carry candidates.

Greedy decoding has one answer: the target's first choice after each prefix. Two things are asked of a reply.

1. *Every token is its own pass's first choice.* The pass that verified a token also said how likely the target found it
   and what it found likeliest. A token that is not the likeliest there was accepted against the target: lossy, whatever
   it is. This holds for every token, also behind the point where two replies part.
2. *The reply is that of plain decoding, or parts from it at a tie.* Behind the same prefix two passes of the target can
   disagree about the first choice only by rounding: a pass over one token and a pass over several add up in another
   order. With a the plain token, b the other, and Δ = logit(a) − logit(b), plain decoding saw Δ ≥ 0 and the other
   pass Δ ≤ 0; Δ moved by the sum of the two gaps. A move within `ROUNDING[dtype]` is a rounding tie, a larger one is
   not lossless: the target was fed something else. Behind that point the prefixes differ and nothing more can be
   compared.

What rounding can do, in bfloat16: its numbers have 8 significant bits, so that logits from 16 to 32, where those of
first choices lie, are 1/8 apart. The last rounding alone can move Δ by 1/4 (two logits, two passes, half a step each);
what all layers before have rounded comes on top. The largest of a thousand moves measured on SmolLM2-135M was 1/2, the
median 1/16. The limit is eight steps, 1. In float32 the largest was 0.00004; the limit leaves room for larger models.
"""

import math
from collections.abc import Sequence
from itertools import takewhile
from typing import Literal

import msgspec

from peagle_cli.trace.events import Candidate, DraftBatch, Method, Token
from peagle_cli.trace.rounds import PLAIN, Round, Setting, name_of

ROUNDING = {"bfloat16": 1.0, "float16": 2**-3, "float32": 2**-10}
"""By dtype of the activations, the largest move of the difference between two logits that counts as rounding; that of
bfloat16 where the dtype is not known."""

CANDIDATES = 10
"""How many candidates the events must carry for the check: enough that two tokens of a tie are among them."""

_SAME = 1e-6  # relative; equal logits have equal probabilities

Verdict = Literal["rounding tie", "NOT LOSSLESS"]


class Opinion(msgspec.Struct, frozen=True):
    """What one pass of the target said about the two tokens of a divergence: their log-probabilities, that is, their
    logits less the same constant. None: not among the pass's candidates, and less likely than all of them."""

    plain_token: float | None
    lane_token: float | None


class Divergence(msgspec.Struct, frozen=True):
    """Where a reply is not what it should be: the token at `position` (from 0), in the lane's step `step`.

    `plain` is what plain decoding says there, None where it says nothing more or where the token is judged by its
    own pass. `in_plain` and `in_lane` are the two passes' opinions, `moved` the difference between them that
    rounding would have to explain (the least it can be, where an opinion is unknown).
    """

    position: int
    step: int
    plain: Candidate | None
    lane: Candidate
    verdict: Verdict
    reason: str
    in_plain: Opinion | None = None
    in_lane: Opinion | None = None
    moved: float | None = None


class LaneCheck(msgspec.Struct, frozen=True):
    """How many of a lane's replies are those of plain decoding, part from it at a rounding tie, or are lossy; with the
    first of each kind that is not identical."""

    method: Method
    depth: int
    identical: int
    ties: int
    lossy: int
    first_tie: Divergence | None = None
    first_lossy: Divergence | None = None


class Lossless(msgspec.Struct, frozen=True):
    """The verdict on all lanes: "identical", "rounding tie", "NOT LOSSLESS", or "not checked" and why."""

    verdict: str
    sentence: str
    lanes: tuple[LaneCheck, ...] = ()


class _Choice(msgspec.Struct, frozen=True):
    """A token of a reply, with the target's candidates in the pass that verified it."""

    token: Candidate
    step: int
    candidates: tuple[Candidate, ...]

    def log_prob(self, id: int) -> float | None:
        if id == self.token.id:
            return _log(self.token.prob)
        return next((_log(candidate.prob) for candidate in self.candidates if candidate.id == id), None)

    def least(self) -> float:
        """What a token that is not among the candidates has at most."""
        return _log(self.candidates[-1].prob)


def in_common(ids: Sequence[int], others: Sequence[int]) -> int:
    """How many tokens two replies begin with in common."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(ids, others, strict=False)))


def check(plain: Sequence[DraftBatch], lane: Sequence[DraftBatch], dtype: str) -> Divergence | None:
    """The worst that is wrong with a greedy reply, given the plain one to the same prompt under the same limits; None
    when they are the same. The batches must carry candidates."""
    ours = _choices(lane)
    for position, choice in enumerate(ours):
        if not _is_first(choice):
            return _against_itself(position, choice)
    for position, (theirs, choice) in enumerate(zip(_choices(plain), ours, strict=False)):
        if theirs.token.id != choice.token.id:
            return _parted(position, theirs, choice, dtype)
    return _ended(plain, lane)


def judge(rounds: Sequence[Round]) -> Lossless:
    """Hold every reply against plain decoding's, where that can be done."""
    first = next(iter(rounds[0].replies.values()))
    if first.started.sampling.temperature > 0:
        return Lossless("not checked", "Whether it is lossless was not checked: sampled replies differ by chance.")
    if not all(PLAIN in each.replies for each in rounds):
        return Lossless(
            "not checked", "Whether it is lossless was not checked: there is no plain decoding to hold against."
        )
    settings = [setting for setting in rounds[0].replies if setting != PLAIN]
    checks = tuple(_check_lane(setting, rounds) for setting in (PLAIN, *settings))
    replies = sum(check.identical + check.ties + check.lossy for check in checks[1:])
    if lossy := [check for check in checks if check.lossy]:
        worst = lossy[0]
        assert worst.first_lossy is not None
        return Lossless(
            "NOT LOSSLESS",
            f"NOT LOSSLESS: {name_of((worst.method, worst.depth))}, token {worst.first_lossy.position}: "
            f"{worst.first_lossy.reason}.",
            checks,
        )
    ties = sum(check.ties for check in checks)
    if ties:
        return Lossless(
            "rounding tie",
            f"{replies - ties} of {replies} replies are plain decoding's token for token; {ties} part from it at a "
            "rounding tie.",
            checks,
        )
    return Lossless("identical", "Same tokens in every lane." if replies else "There is only plain decoding.", checks)


def _check_lane(setting: Setting, rounds: Sequence[Round]) -> LaneCheck:
    found = [_against_plain(setting, each) for each in rounds]
    ties = [divergence for divergence in found if divergence and divergence.verdict == "rounding tie"]
    lossy = [divergence for divergence in found if divergence and divergence.verdict == "NOT LOSSLESS"]
    return LaneCheck(
        method=setting[0],
        depth=setting[1],
        identical=found.count(None),
        ties=len(ties),
        lossy=len(lossy),
        first_tie=ties[0] if ties else None,
        first_lossy=lossy[0] if lossy else None,
    )


def _against_plain(setting: Setting, each: Round) -> Divergence | None:
    plain, lane = each.replies[PLAIN], each.replies[setting]
    return check(plain.batches, lane.batches, lane.started.machine.dtype)


def _choices(batches: Sequence[DraftBatch]) -> list[_Choice]:
    choices = []
    for batch in batches:
        for i, token in enumerate(batch.tokens):
            if i < batch.accepted:
                view = batch.target[i]
                choices.append(_Choice(Candidate(token.id, token.text, view.prob), batch.step, view.candidates))
            else:
                assert token.prob is not None, "candidates were asked for"
                choices.append(_Choice(Candidate(token.id, token.text, token.prob), batch.step, token.alternatives))
    return choices


def _is_first(choice: _Choice) -> bool:
    return choice.token.prob >= choice.candidates[0].prob * (1 - _SAME)


def _against_itself(position: int, choice: _Choice) -> Divergence:
    return Divergence(
        position=position,
        step=choice.step,
        plain=None,
        lane=choice.token,
        verdict="NOT LOSSLESS",
        reason=f"the target itself preferred {choice.candidates[0].text!r} ({choice.candidates[0].prob:.1%}) to "
        f"{choice.token.text!r} ({choice.token.prob:.1%})",
    )


def _parted(position: int, plain: _Choice, lane: _Choice, dtype: str) -> Divergence:
    in_plain = Opinion(plain.log_prob(plain.token.id), plain.log_prob(lane.token.id))
    in_lane = Opinion(lane.log_prob(plain.token.id), lane.log_prob(lane.token.id))
    moved = _gap(in_plain.plain_token, in_plain.lane_token, plain) + _gap(in_lane.lane_token, in_lane.plain_token, lane)
    limit = ROUNDING.get(dtype, ROUNDING["bfloat16"])
    verdict: Verdict = "rounding tie" if moved <= limit else "NOT LOSSLESS"
    return Divergence(
        position=position,
        step=lane.step,
        plain=plain.token,
        lane=lane.token,
        verdict=verdict,
        reason=f"{plain.token.text!r} and {lane.token.text!r} moved by {moved:.2g} logits between the two passes; "
        f"rounding in {dtype} explains up to {limit:.2g}",
        in_plain=in_plain,
        in_lane=in_lane,
        moved=moved,
    )


def _gap(chosen: float | None, other: float | None, choice: _Choice) -> float:
    assert chosen is not None
    return chosen - (choice.least() if other is None else other)


def _ended(plain: Sequence[DraftBatch], lane: Sequence[DraftBatch]) -> Divergence | None:
    """Replies that say the same must also end at the same token."""
    ours, theirs = _tokens(lane), _tokens(plain)
    if len(ours) == len(theirs):
        return None
    last = lane[-1]
    token = last.tokens[-1] if last.tokens else last.bonus
    return Divergence(
        position=len(ours),
        step=last.step,
        plain=None,
        lane=Candidate(token.id, token.text, token.prob or 0.0),
        verdict="NOT LOSSLESS",
        reason=f"it ends after {len(ours)} tokens, plain decoding after {len(theirs)}",
    )


def _tokens(batches: Sequence[DraftBatch]) -> list[Token]:
    return [token for batch in batches for token in batch.tokens]


def _log(prob: float) -> float:
    return math.log(prob) if prob > 0 else -math.inf
