"""One token of a step under the glass: what drafter and target thought of it, and why it was kept or not."""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

from peagle_cli.text import one_line
from peagle_cli.trace.events import Candidate, DraftBatch, Sampling, TargetView, Token

Fate = Literal["accepted", "rejected", "discarded", "correction", "bonus", "plain"]
"""What became of a draft, and what the target's own token of a step is."""

_ROUNDING = 1e-5  # of probabilities in single precision that sum to 1


class Entropy(NamedTuple):
    """How undecided a model was, in bits. Of the likeliest candidates alone only a lower bound is known, unless they
    are all there is: then it is `exact`."""

    bits: float
    exact: bool


class Inspection(NamedTuple):
    """What is known of one token. `place` counts a step's drafts from 0; the number of drafts stands for the target's
    own token. `behind` is the number of drafts that were discarded behind a rejected one, `reason` a sentence.

    `drafter` and `target` are the candidates at that place, the likeliest first, empty where none were recorded or, of
    the drafter, where nothing was drafted. `q` and `p` are the two models' probabilities of the token itself.
    """

    batch: DraftBatch
    place: int
    token: Token
    fate: Fate
    reason: str
    behind: int
    drafter: tuple[Candidate, ...]
    target: tuple[Candidate, ...]
    q: float | None
    p: float | None

    @property
    def seconds_per_token(self) -> float | None:
        """What the step cost for each token that it gave; None where it gave none."""
        batch = self.batch
        return (batch.draft_s + batch.verify_s) / batch.emitted if batch.emitted else None


def places(batch: DraftBatch) -> int:
    """How many tokens of a step can be looked at: its drafts, and the target's own."""
    return len(batch.drafted) + 1


def inspect(batch: DraftBatch, place: int, sampling: Sampling) -> Inspection:
    """Look at the token at `place` of `batch`, which was chosen as `sampling` says."""
    if place == len(batch.drafted):
        return _of_target(batch, place)
    draft = batch.drafted[place]
    view = _view(batch, place)
    rejected = place == batch.accepted
    return Inspection(
        batch,
        place,
        draft,
        "accepted" if place < batch.accepted else "rejected" if rejected else "discarded",
        _reason(batch, place, sampling),
        len(batch.drafted) - place - 1 if rejected else 0,
        draft.alternatives,
        view.candidates if view else batch.bonus.alternatives if rejected else (),
        draft.prob,
        view.prob if view else None,
    )


def entropy(candidates: Sequence[Candidate]) -> Entropy | None:
    """The entropy of the distribution that these are the likeliest tokens of; None without any.

    What they leave of the probability lies on tokens no likelier than the last of them, and so adds at least as many
    bits per unit as that token has.
    """
    probs = [candidate.prob for candidate in candidates if candidate.prob > 0]
    if not probs:
        return None
    rest = max(0.0, 1.0 - sum(probs))
    bits = -sum(prob * math.log2(prob) for prob in probs)
    if rest > _ROUNDING:
        bits -= rest * math.log2(min(rest, probs[-1]))
    return Entropy(max(0.0, bits), rest <= _ROUNDING)


def _of_target(batch: DraftBatch, place: int) -> Inspection:
    rejected = batch.rejected[0] if batch.rejected else None
    if rejected is not None:
        fate: Fate = "correction"
        reason = f"The target's own token, in place of {_quoted(rejected)}, which it rejected."
    elif batch.drafted:
        fate, reason = "bonus", "All drafts were accepted, and the pass that checked them gives this token for free."
    elif batch.prefill:
        fate, reason = "plain", "The pass over the prompt gives the first token."
    else:
        fate, reason = "plain", "Nothing was drafted: one pass of the target gives one token."
    return Inspection(
        batch,
        place,
        batch.bonus,
        fate,
        reason,
        len(batch.rejected) - 1 if rejected else 0,
        rejected.alternatives if rejected else (),
        batch.bonus.alternatives,
        _probability(rejected.alternatives, batch.bonus) if rejected else None,
        batch.bonus.prob,
    )


def _view(batch: DraftBatch, place: int) -> TargetView | None:
    """What the target thought at a draft's place, where that was recorded."""
    return batch.target[place] if place < len(batch.target) else None


def _reason(batch: DraftBatch, place: int, sampling: Sampling) -> str:
    draft = batch.drafted[place]
    if place > batch.accepted:
        return f"Never tested: it stands behind {_quoted(batch.drafted[batch.accepted])}, which was rejected."
    kept = place < batch.accepted
    view = _view(batch, place)
    if sampling.temperature == 0:
        if kept:
            return "It is the target's first choice, too."
        chance = view and (f"{view.prob:.1%}" if view.prob >= 0.001 else "less than 0.1%")
        chances = f" The target gives the draft {chance}." if chance else ""
        return f"The target's first choice is {_quoted(batch.bonus)}.{chances}"
    if view is None or view.threshold is None:
        return "The target's draw fell on it." if kept else f"The target's draw fell on {_quoted(batch.bonus)}."
    return _test(draft, view.prob, view.threshold, sampling)


def _test(draft: Token, p: float, u: float, sampling: Sampling) -> str:
    """The acceptance test in numbers: u below min(1, p / q), where q of a drafter's first choice is 1."""
    if sampling.drafts == "sampled" and draft.prob:
        chance, how = min(1.0, p / draft.prob), f"min(1, p / q) = min(1, {p:.3f} / {draft.prob:.3f})"
    else:
        chance, how = p, "p, for the draft was the drafter's only choice"
    sign = "<" if u < chance else "≥"
    return f"Drawn u = {u:.3f} {sign} {chance:.3f} = {how}."


def _probability(candidates: Sequence[Candidate], token: Token) -> float | None:
    return next((candidate.prob for candidate in candidates if candidate.id == token.id), None)


def _quoted(token: Token) -> str:
    """A special token adds nothing to the text; its name stands among the candidates, where there are any."""
    text = token.text or next((each.text for each in token.alternatives if each.id == token.id), "")
    return f"“{one_line(text)}”" if text else "one without text"
