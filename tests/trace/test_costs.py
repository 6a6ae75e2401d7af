import pytest

from peagle_cli.trace.costs import StepCosts, interpolate
from tests.trace.batches import Machine, batch


def test_interpolates_and_goes_on_beyond() -> None:
    points = {0: 6.0, 4: 8.0, 8: 16.0}
    assert [interpolate(points, x) for x in (0, 2, 4, 6, 8, 10)] == [6, 7, 8, 12, 16, 20]
    assert interpolate({3: 5.0}, 9) == 5
    assert interpolate({4: 10.0, 2: 20.0}, 9) == 0, "no time is below zero"


def test_measured_depths_are_their_means_and_the_prefill_is_no_step() -> None:
    costs = StepCosts([batch(3, draft_s=0.002, verify_s=0.01), batch(3, draft_s=0.004, verify_s=0.02)])
    costs.add(batch(0, method="none", verify_s=9.0, prefill=50))
    assert costs.draft_s("peagle", 3) == pytest.approx(0.003)
    assert costs.verify_s(3) == pytest.approx(0.015)
    assert costs.draft_s("peagle", 0) == costs.draft_s("none", 5) == 0


def test_one_depth_tells_a_pass_per_token_from_one_pass_for_all() -> None:
    costs = StepCosts([batch(3, draft_s=0.003), batch(3, draft_s=0.003, method="eagle3")])
    assert costs.draft_s("peagle", 6) == pytest.approx(0.003)
    assert costs.draft_s("eagle3", 6) == pytest.approx(0.006)


def test_without_a_sweep_no_disturbance_makes_a_step_cost_nothing() -> None:
    slow_when_shallow = StepCosts([batch(3, verify_s=0.05), batch(4, verify_s=0.01)])
    assert slow_when_shallow.verify_s(8) == pytest.approx(0.01)
    slow_when_deep = StepCosts([batch(3, verify_s=0.01), batch(4, verify_s=0.05)])
    assert slow_when_deep.verify_s(0) == pytest.approx(0.0025), "its share of the fewest that were measured"


def test_a_sweep_gives_the_shape_and_the_batches_the_level() -> None:
    """The lanes ran on a longer context, where everything takes a tenth longer."""
    machine = Machine([0.5] * 10)
    sweep = StepCosts(b for depth in range(11) for b in machine.run("peagle", depth, steps=5))
    slower = [
        batch(depth, draft_s=1.1 * machine.draft_s("peagle", depth), verify_s=1.1 * machine.verify_s(depth))
        for depth in (0, 3, 7)
        for _ in range(10)
    ]
    costs = StepCosts(slower, sweep)
    for depth in (1, 5, 10):
        assert costs.verify_s(depth) == pytest.approx(1.1 * machine.verify_s(depth))
        assert costs.draft_s("peagle", depth) == pytest.approx(1.1 * machine.draft_s("peagle", depth))


def test_a_sweep_alone_is_enough() -> None:
    machine = Machine([0.5])
    costs = StepCosts([], StepCosts(b for depth in (0, 4) for b in machine.run("eagle3", depth, steps=3)))
    assert costs.verify_s(2) == pytest.approx(machine.verify_s(2))
    assert costs.draft_s("eagle3", 2) == pytest.approx(machine.draft_s("eagle3", 2))


def test_a_disturbed_sweep_does_not_bend_the_curve() -> None:
    machine = Machine([0.5] * 10)
    steps = [b for depth in range(11) for b in machine.run("peagle", depth, steps=12)]
    slow = [batch(4, draft_s=0.1, verify_s=0.2) if b.depth == 4 else b for b in steps]
    hiccups = [batch(7, draft_s=0.1, verify_s=0.3) for _ in range(6)]
    costs = StepCosts(machine.run("peagle", 10, steps=50), StepCosts([*slow, *hiccups]))
    assert costs.verify_s(7) == pytest.approx(machine.verify_s(7))
    assert costs.verify_s(4) == pytest.approx(machine.verify_s(5)), "no more than a deeper step"
    assert costs.draft_s("peagle", 4) == pytest.approx(machine.draft_s("peagle", 5))


def test_where_there_are_many_batches_their_mean_counts() -> None:
    machine = Machine([0.5] * 10)
    sweep = StepCosts(b for depth in range(11) for b in machine.run("peagle", depth, steps=5))
    lanes = [batch(0, method="none", verify_s=0.02)] * 20 + [batch(4, draft_s=0.001, verify_s=0.03)] * 20
    costs = StepCosts([*lanes, batch(7, verify_s=9.0)], sweep)
    assert costs.verify_s(0) == pytest.approx(0.02)
    assert costs.verify_s(4) == pytest.approx(0.03)
    assert 0.02 < costs.verify_s(2) < 0.03
    ratio = 0.03 / machine.verify_s(4)
    assert costs.verify_s(8) == pytest.approx(ratio * machine.verify_s(8)), "a single step is not to be trusted"
