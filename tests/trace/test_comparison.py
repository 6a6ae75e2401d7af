"""Reports on rounds of a made-up machine, whose speeds are known exactly."""

import itertools
from collections.abc import Iterator, Sequence

import msgspec
import pytest

from peagle_cli.trace import events
from peagle_cli.trace.comparison import Report, compare
from peagle_cli.trace.events import Event, Finished, Footprint, Method, Sampling, Started
from peagle_cli.trace.rounds import PLAIN, Round, Setting
from tests.trace.batches import Machine, batch

HARDWARE = events.Machine("cpu", "Old faithful", "float32", "float32", 2)
STEPS = 400
SETTINGS: tuple[Setting, ...] = (PLAIN, ("eagle3", 3), ("peagle", 3), ("peagle", 7))
GOOD, BAD = Machine([0.8, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1]), Machine([0.01] * 7)


def reply(machine: Machine, setting: Setting, seed: int, slower: float = 1.0) -> Iterator[Event]:
    """A lane's events: a prefill of 20 ms, then so many steps."""
    method, depth = setting
    lane = f"{method} {depth}"
    yield Started(
        lane=lane,
        engine="torch",
        model="Model",
        drafters={"eagle3": "E", "peagle": "P"},
        max_depths={"eagle3": 10, "peagle": 10},
        method=method,
        depth=depth,
        sampling=Sampling(temperature=1.0),
        max_tokens=1000,
        prompt="Hello",
        prompt_ids=tuple(range(50)),
        reused=0,
        machine=HARDWARE,
        versions={"peagle": "1"},
    )
    clock_s = 0.02
    yield msgspec.structs.replace(batch(0, verify_s=0.02, prefill=50, clock_s=clock_s), lane=lane)
    for step in machine.run(method, depth, steps=STEPS, seed=seed):
        clock_s += slower * (step.draft_s + step.verify_s)
        yield msgspec.structs.replace(
            step, lane=lane, draft_s=slower * step.draft_s, verify_s=slower * step.verify_s, clock_s=clock_s
        )
    yield Finished(lane, "length")


def rounds(
    machines: Sequence[tuple[str, Machine]], settings: Sequence[Setting] = SETTINGS, slower: float = 1.0
) -> list[Round]:
    return [
        Round(category, itertools.chain.from_iterable(reply(machine, s, i, slower) for s in settings))
        for i, (category, machine) in enumerate(machines)
    ]


def report_on(given: list[Round]) -> Report:
    return compare(given, 1, {})


def test_figures_are_the_machines() -> None:
    report = report_on(rounds([("", GOOD)] * 5))
    for lane in report.lanes:
        assert lane.tokens_per_second == pytest.approx(GOOD.speed(lane.method, lane.depth), rel=0.06)
        assert lane.time_to_first_token_s == pytest.approx(0.02)
        assert lane.mean_verify_s == pytest.approx(GOOD.verify_s(lane.depth))
        assert lane.mean_draft_s == pytest.approx(GOOD.draft_s(lane.method, lane.depth))
        assert lane.steps == 5 * STEPS
        assert lane.categories == {}, "one category is none"
        low, high = lane.tokens_per_second_quartiles or (0, 0)
        assert low <= (lane.tokens_per_second or 0) <= high
    plain, eagle3, peagle3, _ = report.lanes
    assert plain.speedup == 1
    assert peagle3.speedup == pytest.approx(GOOD.speed("peagle", 3) / GOOD.speed("none", 0), rel=0.06)
    assert eagle3.speedup_over_eagle3 == 1


def test_the_verdict_counts_as_the_paper_does() -> None:
    report = report_on(rounds([("", GOOD)] * 5))
    best = max(report.lanes, key=lambda lane: lane.tokens_per_second or 0)
    assert best.method == "peagle"
    assert report.verdict.startswith(
        f"P-EAGLE at depth {best.depth} wins: {best.speedup:.2f}× plain, "
        f"{best.speedup_over_eagle3:.2f}× EAGLE-3 at its best depth (3)."
    )
    assert report.notes == ()
    assert "not checked" in report.verdict, "sampled replies differ by chance"


def test_a_lead_that_may_be_chance_is_called_so() -> None:
    close = rounds([("", GOOD)] * 6, [("peagle", 3)])
    for i, each in enumerate(close):
        for event in reply(GOOD, ("peagle", 4), i + 50, slower=(1.3, 0.8)[i % 2]):
            each.add(event)
    assert "within the noise" in report_on(close).verdict
    apart = rounds([("", GOOD)] * 6, [("peagle", 3), PLAIN])
    assert "within the noise" not in report_on(apart).verdict


def test_a_drafter_that_is_never_right_is_reported_as_hurting() -> None:
    report = report_on(rounds([("", BAD)] * 3))
    assert report.verdict.startswith("Plain decoding wins")
    assert [note.split()[0] for note in report.notes] == ["EAGLE-3", "P-EAGLE"]
    assert all("costs more than it gives" in note for note in report.notes)
    assert report.advice is not None
    assert report.advice.best.method == "none"


def test_categories_have_figures_notes_and_advice_of_their_own() -> None:
    report = report_on(rounds([("code", GOOD)] * 4 + [("poems", BAD)] * 2))
    peagle = report.lanes[2]
    assert (peagle.categories["code"].speedup or 0) > 1 > (peagle.categories["poems"].speedup or 2)
    assert any(note.startswith("On poems prompts P-EAGLE costs more") for note in report.notes)
    assert report.advice is not None
    assert report.advice.categories["code"].best.method == "peagle"
    assert report.advice.categories["poems"].best.method == "none"


def test_memory_and_attention_follow_from_footprints() -> None:
    footprints: dict[Method, Footprint] = {
        "none": Footprint(weights=1000, kv_cache=10, attention_flop=8),
        "peagle": Footprint(weights=100, kv_cache=2, attention_flop=3_000_000),
    }
    never = Machine([0.0] * 3)
    (_, lane) = compare(rounds([("", never)], [PLAIN, ("peagle", 3)]), 1, footprints).lanes
    assert lane.memory is not None
    assert lane.memory.target_weights == 1000
    assert lane.memory.target_kv_cache == 10 * (50 + STEPS + 1)
    assert lane.memory.drafter_kv_cache == 2 * (50 + STEPS + 1)
    # With c tokens of context, one of them new: slots c - 2, c - 1 and c, which see c - 1, c and c + 1 slots.
    contexts = range(51, 51 + STEPS)
    assert lane.memory.draft_attention_mflop == pytest.approx(3 * sum(3 * c for c in contexts) / STEPS)


def test_a_reply_of_one_token_has_no_speed() -> None:
    short = Round("", list(reply(GOOD, PLAIN, 1))[:2])
    report = report_on([short])
    assert report.lanes[0].tokens_per_second is None
    assert report.verdict.startswith("The replies are too short")
    assert report.advice is None
