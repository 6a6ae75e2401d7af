import random
from collections.abc import Sequence
from statistics import fmean

import pytest

from peagle_cli.trace.advice import TRIAL_STEPS, Advice, AutoDepth, RollingAdvice, advise
from peagle_cli.trace.costs import StepCosts
from peagle_cli.trace.events import DraftBatch, Method
from peagle_cli.trace.rounds import Setting
from tests.trace.batches import Machine, batch

GOOD = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05]


def advice_from(machine: Machine, settings: Sequence[Setting], sweep: bool = True) -> Advice:
    measured = {setting: list(machine.run(*setting)) for setting in settings}
    shape = StepCosts(
        b for method in ("eagle3", "peagle") for depth in range(11) for b in machine.run(method, depth, steps=3)
    )
    costs = StepCosts((b for lane in measured.values() for b in lane), shape if sweep else None)
    return advise(measured, costs, {"eagle3": 10, "peagle": 10})


@pytest.mark.parametrize("sweep", [True, False])
def test_predicts_the_speed_of_every_depth(sweep: bool) -> None:
    machine = Machine(GOOD)
    advice = advice_from(machine, [("none", 0), ("eagle3", 3), ("eagle3", 10), ("peagle", 2), ("peagle", 10)], sweep)
    assert len(advice.predictions) == 21
    for each in advice.predictions:
        assert each.tokens_per_second == pytest.approx(machine.speed(each.method, each.depth), rel=0.03)
        assert not each.extrapolated
    fastest = max(
        ((m, k) for m in ("eagle3", "peagle") for k in range(1, 11)), key=lambda setting: machine.speed(*setting)
    )
    assert (advice.best.method, advice.best.depth) == fastest
    assert f"P-EAGLE at depth {fastest[1]}" in advice.sentence


def test_says_when_drafting_costs_more_than_it_gives() -> None:
    advice = advice_from(Machine([0.05, 0.0]), [("none", 0), ("peagle", 7)])
    assert advice.best.method == "none"
    assert "costs more than it gives" in advice.sentence


def test_a_drafter_that_is_never_right_hurts() -> None:
    advice = advice_from(Machine([0.0] * 7), [("none", 0), ("eagle3", 3), ("peagle", 3), ("peagle", 7)])
    assert advice.best.method == "none"
    assert all(p.mean_acceptance_length == 1 for p in advice.predictions)


def test_deeper_than_measured_each_position_keeps_the_last_share() -> None:
    advice = advice_from(Machine([0.8, 0.4, 0.2, 0.1]), [("none", 0), ("peagle", 2)])
    at_4 = next(p for p in advice.predictions if p.depth == 4)
    assert at_4.extrapolated
    assert at_4.mean_acceptance_length == pytest.approx(1 + 0.8 + 0.4 + 0.2 + 0.1, abs=0.05)
    assert not next(p for p in advice.predictions if p.depth == 2).extrapolated


def test_measured_lanes_are_checked_against_what_the_other_depths_foretell() -> None:
    machine = Machine(GOOD)
    advice = advice_from(machine, [("none", 0), ("eagle3", 4), ("peagle", 3), ("peagle", 7)])
    checks = {(check.method, check.depth): check for check in advice.checks}
    assert len(checks) == 4
    assert abs(checks["peagle", 3].error) < 0.03
    assert checks["peagle", 3].blind
    assert not checks["eagle3", 4].blind, "there is no other depth to foretell it from"
    for check in advice.checks:
        assert check.measured_tokens_per_second == pytest.approx(machine.speed(check.method, check.depth), rel=0.03)
        assert check.error == pytest.approx(check.predicted_tokens_per_second / check.measured_tokens_per_second - 1)


def test_without_a_draft_there_is_nothing_to_advise() -> None:
    plain = [batch(0, method="none") for _ in range(3)]
    advice = advise({("none", 0): plain}, StepCosts(plain), {})
    assert advice.best.method == "none"
    assert "Nothing was drafted" in advice.sentence


def test_rolling_advice_follows_what_is_being_said() -> None:
    rolling = RollingAdvice(window=200)
    assert rolling.advice(10) is None
    for depth in range(11):
        for each in Machine(GOOD).run("peagle", depth, steps=20):
            rolling.add(each)
    easy = rolling.advice(10)
    assert easy is not None
    assert easy.best.depth > 3
    for each in Machine([0.02, 0.0]).run("peagle", 3, steps=200):
        rolling.add(each)
    hard = rolling.advice(10)
    assert hard is not None
    assert hard.best.method == "none"


def test_rolling_advice_forgets_another_drafter() -> None:
    rolling = RollingAdvice()
    drafts: list[DraftBatch] = [*Machine(GOOD).run("peagle", 5, steps=30), *Machine([0.0]).run("eagle3", 5, steps=1)]
    for each in drafts:
        rolling.add(each)
    advice = rolling.advice(10)
    assert advice is not None
    assert {p.method for p in advice.predictions} == {"none", "eagle3"}


def run_auto(auto: AutoDepth, machine: Machine, steps: int, method: Method = "peagle") -> list[int]:
    """The depths of so many steps that follow the advice."""
    chance = random.Random(3)
    depths = []
    for _ in range(steps):
        depth = auto.depth
        luck = chance.random()
        accepted = sum(luck < rate for rate in machine.rates[:depth])
        draft_s = machine.draft_s(method, depth) if depth else 0.0
        auto.add(batch(depth, accepted, method=method, draft_s=draft_s, verify_s=machine.verify_s(depth)))
        depths.append(depth)
    return depths


def test_auto_depth_finds_the_best_and_stays_near_it() -> None:
    machine = Machine(GOOD, per_token_s=0.001)
    best = max(range(11), key=lambda depth: machine.speed("peagle", depth))
    depths = run_auto(AutoDepth(10), machine, 300)
    assert set(depths[:TRIAL_STEPS]) == {10}, "it must try before it can know"
    chosen = [depth for depth in depths[150:] if depth != 10]
    assert abs(fmean(chosen) - best) < 1.5
    assert machine.speed("peagle", round(fmean(chosen))) > 0.95 * machine.speed("peagle", best)


def test_auto_depth_stops_drafting_where_it_hurts_and_begins_again_where_it_helps() -> None:
    auto = AutoDepth(10)
    hard = run_auto(auto, Machine([0.02, 0.0]), 150)
    assert hard[100:].count(0) > 40
    easy = run_auto(auto, Machine([0.95] * 10), 400)
    assert fmean(easy[-50:]) > 5
