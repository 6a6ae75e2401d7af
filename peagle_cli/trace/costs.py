"""What a step costs, by the number of tokens it drafts and verifies: as measured, and interpolated between.

Drafting depends on method and depth, verifying on the number of drafted tokens alone, whoever drafted them. Both also
depend on the length of the context; here that is whatever it was while measuring.
"""

import math
from collections.abc import Iterable, Mapping
from statistics import fmean, quantiles

from peagle_cli.trace.events import DraftBatch, Method

_ENOUGH = 10  # steps whose mean is to be trusted


class StepCosts:
    """Mean seconds per step, out of batches.

    The curves go through the means of the depths at which there are many batches. Between and beyond, the batches of a
    `sweep`, a few at every depth, give their shape; without one they are straight.
    """

    def __init__(self, batches: Iterable[DraftBatch] = (), sweep: "StepCosts | None" = None) -> None:
        self._sweep = sweep
        self._verify: dict[int, list[float]] = {}
        self._draft: dict[Method, dict[int, list[float]]] = {}
        for batch in batches:
            self.add(batch)

    def add(self, batch: DraftBatch) -> None:
        """Take one more batch into account; the prefill is no step."""
        if batch.prefill:
            return
        drafted = len(batch.drafted)
        self._verify.setdefault(drafted, []).append(batch.verify_s)
        if drafted:
            self._draft.setdefault(batch.method, {}).setdefault(drafted, []).append(batch.draft_s)

    @property
    def known(self) -> bool:
        """Whether there was any step."""
        return bool(self._verify) or (self._sweep is not None and self._sweep.known)

    def verify_s(self, drafted: int) -> float:
        """Seconds of a target pass over the last token and `drafted` more. Some step must be known."""
        return _estimate(self._verify, self._sweep._verify if self._sweep else None, drafted)

    def draft_s(self, method: Method, drafted: int) -> float:
        """Seconds in which `method`, which must be known, drafts so many tokens; none cost nothing."""
        if method == "none" or drafted == 0:
            return 0.0
        own = self._draft.get(method, {})
        shape = self._sweep._draft.get(method) if self._sweep else None
        if method == "eagle3":  # a pass per token: no token, no time
            own, shape = {0: [0.0], **own}, {0: [0.0], **shape} if shape else None
        return _estimate(own, shape, drafted)


def interpolate(points: Mapping[int, float], x: float) -> float:
    """The piecewise linear curve through `points` at `x`, outside of them along the nearest piece; never below 0."""
    xs = sorted(points)
    if len(xs) == 1:
        return points[xs[0]]
    right = next((i for i, known in enumerate(xs) if known >= x and i > 0), len(xs) - 1)
    a, b = xs[right - 1], xs[right]
    return max(0.0, points[a] + (points[b] - points[a]) * (x - a) / (b - a))


def _estimate(own: Mapping[int, list[float]], sweep: Mapping[int, list[float]] | None, x: int) -> float:
    if not sweep:
        return _straight(_rising({depth: fmean(times) for depth, times in own.items()}), x)
    curve = _shape(sweep)
    ratios = {
        depth: fmean(times) / expected
        for depth, times in own.items()
        if len(times) >= _ENOUGH and (expected := interpolate(curve, depth)) > 0
    }
    if not ratios:
        return interpolate(curve, x)
    nearest = min(max(x, min(ratios)), max(ratios))
    return interpolate(ratios, nearest) * interpolate(curve, x)


def _straight(curve: Mapping[int, float], x: int) -> float:
    """The line through `curve` at `x`; fewer tokens than in all of it cost no less than their share."""
    fewest = min(curve)
    return max(interpolate(curve, x), curve[fewest] * min(1.0, (x + 1) / (fewest + 1)))


def _shape(times: Mapping[int, list[float]]) -> dict[int, float]:
    """The curve behind a few steps at every depth. What disturbs a step only ever adds to it: so each depth takes what
    its quick steps took."""
    return _rising({depth: quantiles([*those, min(those)], n=4)[0] for depth, those in times.items()})


def _rising(curve: Mapping[int, float]) -> dict[int, float]:
    """`curve` with every depth at no more than any deeper one: more tokens never cost less."""
    rising: dict[int, float] = {}
    least = math.inf
    for depth in sorted(curve, reverse=True):
        least = min(least, curve[depth])
        rising[depth] = least
    return rising
