"""What a server yields under load: speed, acceptance, and P-EAGLE over EAGLE-3, by requests at once and by depth.

Pure arithmetic on windows: stretches of time in which a server had the same number of requests at once throughout, with
what its counters counted meanwhile. The names are vLLM's, as in `metrics.py`.
"""

from collections.abc import Iterator, Mapping, Sequence
from statistics import median

import msgspec

from peagle_cli.trace.events import Machine, Method, Sampling
from peagle_cli.trace.rounds import PLAIN, Setting, name_of


class Window(msgspec.Struct, frozen=True):
    """What a server counted in `seconds`, of all its requests. `replies` came to their end in it.

    `accepted_at[i]` are the drafts that accepted more than i tokens.
    """

    seconds: float
    replies: int
    tokens: int
    drafts: int
    draft_tokens: int
    accepted_tokens: int
    accepted_at: tuple[int, ...]


class LoadPoint(msgspec.Struct, frozen=True):
    """A method at a depth, with `concurrency` requests at once.

    `tokens_per_second` is the server's, all requests together: the median over `windows`, with the least and the
    greatest. `speedup` is its ratio to plain decoding's under the same load, None where that was not measured.
    Acceptance is that of all windows together, None where nothing was drafted.
    """

    method: Method
    depth: int
    concurrency: int
    windows: int
    replies: int
    tokens: int
    tokens_per_second: float
    tokens_per_second_range: tuple[float, float]
    speedup: float | None
    mean_acceptance_length: float | None
    draft_acceptance_rate: float | None
    per_position_acceptance: tuple[float, ...]

    @property
    def name(self) -> str:
        """For people: "P-EAGLE 7"."""
        return name_of((self.method, self.depth))


class LoadRatio(msgspec.Struct, frozen=True):
    """P-EAGLE's tokens/s over EAGLE-3's under the same load, each at its depth; the range is the widest that their
    windows allow."""

    concurrency: int
    peagle_depth: int
    eagle3_depth: int
    ratio: float
    range: tuple[float, float]


class LoadReport(msgspec.Struct, frozen=True):
    """A whole measurement. `ratios` are at equal depths, `best_ratios` with each method at its fastest."""

    engine: str
    model: str
    drafters: dict[Method, str]
    machine: Machine
    versions: dict[str, str]
    sampling: Sampling
    max_tokens: int
    prompts: int
    repeats: int
    points: tuple[LoadPoint, ...]
    ratios: tuple[LoadRatio, ...]
    best_ratios: tuple[LoadRatio, ...]


Measured = Mapping[tuple[Setting, int], Sequence[Window]]
"""The windows of every setting and number of requests at once; none of them is empty."""


def points_of(measured: Measured) -> tuple[LoadPoint, ...]:
    """A point for each of what was measured, in its order."""
    return tuple(
        _point(setting, concurrency, windows, measured.get((PLAIN, concurrency)))
        for (setting, concurrency), windows in measured.items()
    )


def ratios_of(measured: Measured) -> tuple[LoadRatio, ...]:
    """P-EAGLE over EAGLE-3 at every depth and load at which both were measured."""
    return tuple(
        _ratio(measured, concurrency, depth, depth)
        for (method, depth), concurrency in measured
        if method == "peagle" and (("eagle3", depth), concurrency) in measured
    )


def best_ratios_of(measured: Measured) -> tuple[LoadRatio, ...]:
    """P-EAGLE over EAGLE-3 at every load, each at the depth at which it was fastest under that load."""
    return tuple(_best_ratios(measured))


def _best_ratios(measured: Measured) -> Iterator[LoadRatio]:
    for concurrency in dict.fromkeys(concurrency for _, concurrency in measured):
        fastest: dict[Method, int] = {}
        for (method, depth), each in measured:
            if each == concurrency and _speed(measured, (method, depth), concurrency) > _speed(
                measured, (method, fastest.get(method, -1)), concurrency
            ):
                fastest[method] = depth
        if "peagle" in fastest and "eagle3" in fastest:
            yield _ratio(measured, concurrency, fastest["peagle"], fastest["eagle3"])


def _speed(measured: Measured, setting: Setting, concurrency: int) -> float:
    """The median speed; 0 for what was not measured."""
    return median(_speeds(measured.get((setting, concurrency), ())) or [0.0])


def _speeds(windows: Sequence[Window]) -> list[float]:
    return [window.tokens / window.seconds for window in windows]


def _ratio(measured: Measured, concurrency: int, peagle_depth: int, eagle3_depth: int) -> LoadRatio:
    peagle = _speeds(measured[("peagle", peagle_depth), concurrency])
    eagle3 = _speeds(measured[("eagle3", eagle3_depth), concurrency])
    return LoadRatio(
        concurrency,
        peagle_depth,
        eagle3_depth,
        median(peagle) / median(eagle3),
        (min(peagle) / max(eagle3), max(peagle) / min(eagle3)),
    )


def _point(setting: Setting, concurrency: int, windows: Sequence[Window], plain: Sequence[Window] | None) -> LoadPoint:
    speeds = _speeds(windows)
    drafts = sum(window.drafts for window in windows)
    drafted = sum(window.draft_tokens for window in windows)
    accepted = sum(window.accepted_tokens for window in windows)
    positions = zip(*(window.accepted_at for window in windows), strict=True)
    return LoadPoint(
        method=setting[0],
        depth=setting[1],
        concurrency=concurrency,
        windows=len(windows),
        replies=sum(window.replies for window in windows),
        tokens=sum(window.tokens for window in windows),
        tokens_per_second=median(speeds),
        tokens_per_second_range=(min(speeds), max(speeds)),
        speedup=median(speeds) / median(_speeds(plain)) if plain else None,
        mean_acceptance_length=1 + accepted / drafts if drafts else None,
        draft_acceptance_rate=accepted / drafted if drafted else None,
        per_position_acceptance=tuple(sum(position) / drafts for position in positions) if drafts else (),
    )
