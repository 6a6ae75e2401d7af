"""What others have published about P-EAGLE, as data: shown beside what was measured here, with its hardware."""

from collections.abc import Mapping

import msgspec

from peagle_cli.trace.events import Method


class Published(msgspec.Struct, frozen=True):
    """Published figures of one target on one machine, by benchmark.

    `ratios` are P-EAGLE's tokens/s over EAGLE-3's by the number of requests at once, each method at the depth in
    `at_depths`. `acceptance_lengths` are vLLM's (the target's own token counts), by method and depth.
    `tokens_per_second` are at one request at a time.
    """

    model: str
    source: str
    hardware: str
    at_depths: Mapping[Method, int]
    ratios: Mapping[str, Mapping[int, float]]
    acceptance_lengths: Mapping[str, Mapping[Method, Mapping[int, float]]]
    tokens_per_second: Mapping[str, Mapping[Method, float]]


_POST = "vLLM and AWS, “P-EAGLE” (13 March 2026)"
_PAPER = "the P-EAGLE paper (arXiv 2602.01469)"
_CONCURRENCY = (1, 2, 4, 8, 16, 32, 64)


def _ratios(*ratios: float) -> dict[int, float]:
    return dict(zip(_CONCURRENCY, ratios, strict=True))


def _at_5(eagle3: float, peagle: float) -> dict[Method, dict[int, float]]:
    return {"eagle3": {5: eagle3}, "peagle": {5: peagle}}


def _paper(model: str, acceptance_lengths: Mapping[str, Mapping[Method, Mapping[int, float]]]) -> Published:
    return Published(
        model=model,
        source=_PAPER,
        hardware="one H200",
        at_depths={"eagle3": 5, "peagle": 5},
        ratios={},
        acceptance_lengths=acceptance_lengths,
        tokens_per_second={},
    )


_PUBLISHED = (
    Published(
        model="GPT-OSS-20B",
        source=_POST,
        hardware="one B200",
        at_depths={"eagle3": 3, "peagle": 7},
        ratios={
            "MT-Bench": _ratios(1.55, 1.29, 1.35, 1.28, 1.27, 1.09, 1.05),
            "HumanEval": _ratios(1.55, 1.53, 1.45, 1.35, 1.31, 1.37, 1.23),
            "SPEED-Bench code": _ratios(1.69, 1.61, 1.54, 1.45, 1.40, 1.22, 1.25),
        },
        acceptance_lengths={
            "HumanEval": {"peagle": {3: 3.02, 7: 3.94}, "eagle3": {3: 2.65, 7: 3.03}},
            "SPEED-Bench code": {"peagle": {3: 2.87, 7: 3.38}, "eagle3": {3: 2.24, 7: 2.59}},
            "MT-Bench": {"peagle": {3: 2.87, 7: 3.70}, "eagle3": {3: 2.70, 7: 3.27}},
        },
        tokens_per_second={"SPEED-Bench code": {"none": 456, "eagle3": 507, "peagle": 858}},
    ),
    _paper("GPT-OSS-20B", {"HumanEval": _at_5(3.7, 3.8), "MT-Bench": _at_5(3.4, 3.4), "GSM8K": _at_5(3.9, 4.0)}),
    _paper("GPT-OSS-120B", {"HumanEval": _at_5(3.5, 3.5), "MT-Bench": _at_5(2.7, 2.9), "GSM8K": _at_5(3.3, 3.5)}),
    _paper(
        "Qwen3-Coder-30B-A3B", {"HumanEval": _at_5(4.4, 4.5), "MT-Bench": _at_5(3.0, 3.0), "GSM8K": _at_5(3.1, 3.2)}
    ),
)


def published_on(model: str) -> tuple[Published, ...]:
    """The figures on the target with this title; none for a target that nobody has published on."""
    return tuple(each for each in _PUBLISHED if each.model == model)
