"""How fast every depth would be, from what was measured at some: which setting to use, and whether to draft at all.

A step that drafts k tokens yields 1 + a(1) + … + a(k) tokens on average, where a(i) is the share of drafts that accept
position i and all before it; it takes draft(k) + verify(k) seconds. Their ratio is the predicted speed.

`a` is taken from every depth measured with the method: a drafter sees at a position what it would see at any depth, so
that a(i) hardly depends on k (a larger k moves where drafts begin, which is ignored). Deeper than was measured, each
position is taken to keep the share that the last measured one kept of those before it. Costs are those of `costs.py`.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from peagle_cli.trace.costs import StepCosts
from peagle_cli.trace.events import METHOD_NAMES, DraftBatch, Method
from peagle_cli.trace.metrics import Metrics
from peagle_cli.trace.rounds import Setting

ASSUMPTIONS = (
    "Acceptance at a position is taken to be the same at every depth of a method.",
    "Positions deeper than any lane drafted are extrapolated: each keeps the share of the last measured one.",
    "Costs of depths that no lane used come from a few steps at each, scaled to the lanes at the depths around.",
)


class Prediction(msgspec.Struct, frozen=True):
    """What one method would do at one depth.

    `extrapolated` says that the acceptance of a position was not measured but continued. Times are seconds per step.
    """

    method: Method
    depth: int
    tokens_per_second: float
    mean_acceptance_length: float
    draft_s: float
    verify_s: float
    extrapolated: bool


class Check(msgspec.Struct, frozen=True):
    """A measured setting against its prediction, both over all replies together.

    The prediction knows the acceptance of the method's other depths only, or, where there is no other, its own
    (`blind` False); `error` is predicted / measured − 1.
    """

    method: Method
    depth: int
    predicted_tokens_per_second: float
    measured_tokens_per_second: float
    error: float
    blind: bool


class Advice(msgspec.Struct, frozen=True):
    """Predictions of every method and depth, plain decoding first; `best` is the fastest, and `sentence` says so.

    `categories` has the advice for each category of prompts, where there are several.
    """

    best: Prediction
    sentence: str
    predictions: tuple[Prediction, ...]
    checks: tuple[Check, ...] = ()
    categories: dict[str, "Advice"] = {}
    assumptions: tuple[str, ...] = ASSUMPTIONS


TRIAL_STEPS = 3
"""Steps for which `AutoDepth` tries a depth."""

RETRY_EVERY = 60
"""Steps after which `AutoDepth` tries the deepest again."""

WORTH_A_CHANGE = 1.03
"""How much faster another depth must promise to be before `AutoDepth` changes to it: less is noise."""

Measured = Mapping[Setting, Sequence[DraftBatch]]
"""The batches of each setting that was run."""


def advise(measured: Measured, costs: StepCosts, max_depths: Mapping[Method, int]) -> Advice:
    """Advice from `measured`, for every method in it at every depth up to its limit in `max_depths`.

    `costs` must know every method in `measured`.
    """
    acceptance = {method: _acceptance(measured, method) for method, _ in measured if method != "none"}
    predictions = [predict("none", 0, (), costs)]
    for method, rates in acceptance.items():
        if rates:
            predictions += [predict(method, k, rates, costs) for k in range(1, max_depths[method] + 1)]
    best = max(predictions, key=lambda prediction: prediction.tokens_per_second)
    return Advice(
        best=best,
        sentence=_sentence(best, predictions),
        predictions=tuple(predictions),
        checks=tuple(check for setting in measured if (check := _check(setting, measured, costs))),
    )


def predict(method: Method, depth: int, rates: Sequence[float], costs: StepCosts) -> Prediction:
    """What `method` does at `depth`, given the acceptance per position as far as it is known (at least one position,
    unless the depth is 0)."""
    length = 1 + sum(_continued(rates, depth))
    draft_s, verify_s = costs.draft_s(method, depth), costs.verify_s(depth)
    return Prediction(
        method=method,
        depth=depth,
        tokens_per_second=length / (draft_s + verify_s),
        mean_acceptance_length=length,
        draft_s=draft_s,
        verify_s=verify_s,
        extrapolated=depth > len(rates),
    )


class RollingAdvice:
    """Advice for the method in use, from the last `window` drafts: live, while a reply is being generated.

    Costs are kept from the beginning: they do not depend on what is being said.
    """

    def __init__(self, window: int = 64) -> None:
        self._costs = StepCosts()
        self._drafts: deque[DraftBatch] = deque(maxlen=window)

    def add(self, batch: DraftBatch) -> None:
        """Take one more batch into account. A change of method starts the window anew."""
        self._costs.add(batch)
        if not batch.drafted:
            return
        if self._drafts and self._drafts[-1].method != batch.method:
            self._drafts.clear()
        self._drafts.append(batch)

    def advice(self, max_depth: int) -> Advice | None:
        """The best depth from 0 to `max_depth` as of now; None until something was drafted."""
        if not self._drafts:
            return None
        by_setting: dict[Setting, list[DraftBatch]] = {}
        for batch in self._drafts:
            by_setting.setdefault((batch.method, len(batch.drafted)), []).append(batch)
        return advise(by_setting, self._costs, {self._drafts[-1].method: max_depth})


class AutoDepth:
    """Chooses the depth of one lane, step by step, by rolling advice.

    It can only know what it has tried: it begins with a few steps at depths across the whole range, and tries the
    deepest again from time to time, since shallow drafts tell nothing about the positions behind them.
    """

    def __init__(self, max_depth: int) -> None:
        self._max_depth = max_depth
        self._rolling = RollingAdvice()
        self._trials = [depth for depth in (max_depth, 1, max_depth // 2, 0) for _ in range(TRIAL_STEPS)]
        self._since_trial = 0
        self.depth = self._trials[0]

    def add(self, batch: DraftBatch) -> int:
        """Take one more step into account; the depth to draft at from the next one on."""
        if batch.prefill:
            return self.depth
        self._rolling.add(batch)
        if self._trials and batch.depth == self._trials[0]:
            self._trials.pop(0)
            self._since_trial = 0
        if not self._trials:
            self._since_trial += 1
            if advice := self._rolling.advice(self._max_depth):
                self._follow(advice)
            if self._since_trial == RETRY_EVERY:
                self._trials = [self._max_depth] * TRIAL_STEPS
        if self._trials:
            self.depth = self._trials[0]
        return self.depth

    def _follow(self, advice: Advice) -> None:
        now = next(p for p in advice.predictions if p.depth == self.depth)
        if advice.best.tokens_per_second > WORTH_A_CHANGE * now.tokens_per_second:
            self.depth = advice.best.depth


def _acceptance(measured: Measured, method: Method, leave_out: int | None = None) -> tuple[float, ...]:
    """The acceptance per position over all depths of `method`, but for one."""
    batches: Iterable[DraftBatch] = (
        batch
        for (lane_method, depth), lane in measured.items()
        if lane_method == method and depth != leave_out
        for batch in lane
    )
    return Metrics(batches).per_position_acceptance


def _continued(rates: Sequence[float], depth: int) -> list[float]:
    """`rates` cut or continued to `depth` positions."""
    continued = list(rates[:depth])
    before = rates[-2] if len(rates) > 1 else 1.0
    keeps = min(1.0, rates[-1] / before) if rates and before > 0 else 0.0
    while len(continued) < depth:
        continued.append(continued[-1] * keeps)
    return continued


def _check(setting: Setting, measured: Measured, costs: StepCosts) -> Check | None:
    """The measured speed against the predicted; None for a setting that took no step or drafted nothing."""
    method, depth = setting
    steps = [batch for batch in measured[setting] if not batch.prefill]
    seconds = sum(batch.draft_s + batch.verify_s for batch in steps)
    if seconds <= 0:
        return None
    others = _acceptance(measured, method, leave_out=depth) if method != "none" else ()
    rates = others or (_acceptance(measured, method) if method != "none" else ())
    if method != "none" and not rates:
        return None
    predicted = predict(method, depth, rates, costs).tokens_per_second
    speed = sum(batch.emitted for batch in steps) / seconds
    return Check(method, depth, predicted, speed, predicted / speed - 1, blind=bool(others))


def _sentence(best: Prediction, predictions: Sequence[Prediction]) -> str:
    plain = predictions[0]
    drafting = [prediction for prediction in predictions if prediction.method != "none"]
    if not drafting:
        return "Nothing was drafted, so there is nothing to advise."
    if best is plain:
        next_best = max(drafting, key=lambda prediction: prediction.tokens_per_second)
        return (
            f"Drafting costs more than it gives: plain decoding does {plain.tokens_per_second:.0f} tokens/s, "
            f"{METHOD_NAMES[next_best.method]} at its best depth ({next_best.depth}) would do "
            f"{next_best.tokens_per_second:.0f}."
        )
    return (
        f"Best: {METHOD_NAMES[best.method]} at depth {best.depth}, predicted {best.tokens_per_second:.0f} tokens/s, "
        f"{best.tokens_per_second / plain.tokens_per_second:.2f}× plain."
    )
