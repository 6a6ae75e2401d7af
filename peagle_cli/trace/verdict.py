"""Who wins a comparison, in a sentence; and what else its reader should be told."""

import math
from collections.abc import Sequence
from statistics import fmean, median, stdev

from peagle_cli.trace.events import METHOD_NAMES, Method
from peagle_cli.trace.rounds import PLAIN, Round, Setting, by_category, name_of

_HURTS_BELOW = 0.98  # what a speed-up of 1 must fall short of to be called a loss
_SURE = 2.0  # standard errors


class Speeds:
    """The lanes' speeds, reply by reply."""

    def __init__(self, rounds: Sequence[Round]) -> None:
        self._speeds = {
            setting: [each.replies[setting].metrics.tokens_per_second for each in rounds]
            for setting in rounds[0].replies
        }

    @property
    def settings(self) -> list[Setting]:
        """The lanes, in the order in which they were named."""
        return list(self._speeds)

    def of(self, setting: Setting) -> list[float]:
        """Tokens per second of each reply that has a speed."""
        return [speed for speed in self._speeds[setting] if speed is not None]

    def median(self, setting: Setting) -> float | None:
        """Tokens per second of the middle reply; None when no reply has a speed."""
        return median(speeds) if (speeds := self.of(setting)) else None

    def fastest(self, *methods: Method) -> Setting | None:
        """The fastest lane of `methods`; None when none has a speed."""
        speeds = {s: speed for s in self._speeds if s[0] in methods and (speed := self.median(s)) is not None}
        return max(speeds, key=lambda setting: speeds[setting], default=None)

    def ratio(self, setting: Setting, base: Setting | None) -> float | None:
        """How many times as fast as `base` a lane is; None where one of them is missing."""
        if base is None or base not in self._speeds:
            return None
        speed, base_speed = self.median(setting), self.median(base)
        return speed / base_speed if speed and base_speed else None

    def is_clear(self, faster: Setting, slower: Setting) -> bool | None:
        """Whether chance alone would hardly make `faster` this much faster, reply against reply to the same prompt.

        None when there are too few replies to tell.
        """
        pairs = zip(self._speeds[faster], self._speeds[slower], strict=True)
        logs = [math.log(a / b) for a, b in pairs if a and b]
        if len(logs) < 3:
            return None
        return fmean(logs) > _SURE * stdev(logs) / math.sqrt(len(logs))


def winner(speeds: Speeds) -> str:
    """The fastest lane, how it compares, and whether that is clear."""
    first = speeds.fastest("none", "eagle3", "peagle")
    if first is None:
        return "The replies are too short for a speed."
    others = {s: speed for s in speeds.settings if s != first and (speed := speeds.median(s)) is not None}
    if not others:
        return f"{_at(first)} is the only lane."
    second = max(others, key=lambda setting: others[setting])
    return f"{_at(first)} wins{_compared(first, second, speeds)}.{_doubt(first, second, speeds)}"


def notes(rounds: Sequence[Round]) -> tuple[str, ...]:
    """Which methods cost more than they give, over all prompts or on one category of them."""
    speeds = Speeds(rounds)
    told = []
    for method in METHOD_NAMES:
        lane = speeds.fastest(method) if method != "none" else None
        if lane and (loss := _loss(lane, speeds)):
            told.append(f"{METHOD_NAMES[method]} costs more than it gives: {loss}.")
        elif lane:
            for category, those in by_category(rounds).items():
                of_category = Speeds(those)
                lane = of_category.fastest(method)
                if lane and (loss := _loss(lane, of_category)):
                    told.append(f"On {category} prompts {METHOD_NAMES[method]} costs more than it gives: {loss}.")
    return tuple(told)


def _loss(lane: Setting, speeds: Speeds) -> str:
    """How much slower than plain decoding a lane is; empty when it is not."""
    ratio = speeds.ratio(lane, PLAIN)
    return f"{ratio:.2f}× plain at its best depth here ({lane[1]})" if ratio and ratio < _HURTS_BELOW else ""


def _compared(first: Setting, second: Setting, speeds: Speeds) -> str:
    parts = []
    if first != PLAIN and (ratio := speeds.ratio(first, PLAIN)):
        parts.append(f"{ratio:.2f}× plain")
    eagle3 = speeds.fastest("eagle3")
    if eagle3 and first[0] != "eagle3" and (ratio := speeds.ratio(first, eagle3)):
        parts.append(f"{ratio:.2f}× EAGLE-3 at its best depth ({eagle3[1]})")
    if not parts and (ratio := speeds.ratio(first, second)):
        parts.append(f"{ratio:.2f}× {name_of(second)}")
    return f": {', '.join(parts)}" if parts else ""


def _doubt(first: Setting, second: Setting, speeds: Speeds) -> str:
    clear = speeds.is_clear(first, second)
    return f" Its lead over {name_of(second)} is within the noise." if clear is False else ""


def _at(setting: Setting) -> str:
    method, depth = setting
    return "Plain decoding" if method == "none" else f"{METHOD_NAMES[method]} at depth {depth}"
