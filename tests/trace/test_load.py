"""Figures of servers under load, from windows whose sums can be done by hand."""

import pytest

from peagle_cli.trace.load import Window, best_ratios_of, points_of, ratios_of
from peagle_cli.trace.rounds import PLAIN, Setting


def window(seconds: float, tokens: int, drafts: int = 0, accepted_at: tuple[int, ...] = ()) -> Window:
    return Window(seconds, 4, tokens, drafts, drafts * len(accepted_at), sum(accepted_at), accepted_at)


EAGLE3: Setting = ("eagle3", 3)
PEAGLE: Setting = ("peagle", 3)
DEEP: Setting = ("peagle", 7)

MEASURED = {
    (PLAIN, 1): [window(2, 100), window(2, 80), window(1, 60)],
    (EAGLE3, 1): [window(1, 80, 40, (20, 10, 10)), window(1, 100, 40, (30, 20, 0))],
    (PEAGLE, 1): [window(1, 90, 50, (30, 10, 5))],
    (DEEP, 1): [window(1, 135, 50, (30, 20, 10, 5, 5, 0, 0))],
    (EAGLE3, 8): [window(1, 400, 100, (50, 25, 10))],
    (PEAGLE, 8): [window(1, 500, 100, (60, 25, 10))],
    (DEEP, 8): [window(1, 450, 100, (60, 30, 10, 0, 0, 0, 0))],
}


def test_speed_is_the_median_of_windows_with_their_range() -> None:
    plain = points_of(MEASURED)[0]
    assert (plain.name, plain.tokens_per_second, plain.tokens_per_second_range) == ("plain", 50, (40, 60))
    assert (plain.tokens, plain.replies, plain.windows, plain.speedup) == (240, 12, 3, 1)
    assert (plain.mean_acceptance_length, plain.draft_acceptance_rate, plain.per_position_acceptance) == (
        None,
        None,
        (),
    )


def test_acceptance_is_that_of_all_windows_together() -> None:
    eagle3 = points_of(MEASURED)[1]
    assert eagle3.mean_acceptance_length == 1 + 90 / 80
    assert eagle3.draft_acceptance_rate == 90 / 240
    assert eagle3.per_position_acceptance == (50 / 80, 30 / 80, 10 / 80)
    assert eagle3.speedup == pytest.approx(90 / 50)


def test_a_load_without_plain_decoding_has_no_speedup() -> None:
    assert points_of(MEASURED)[4].speedup is None


def test_ratios_are_at_equal_depths_under_equal_loads() -> None:
    at_one, at_eight = ratios_of(MEASURED)
    assert (at_one.concurrency, at_one.peagle_depth, at_one.eagle3_depth, at_one.ratio) == (1, 3, 3, 1.0)
    assert at_one.range == (0.9, 90 / 80)
    assert (at_eight.concurrency, at_eight.ratio, at_eight.range) == (8, 1.25, (1.25, 1.25))


def test_each_at_its_fastest_may_have_another_depth_under_another_load() -> None:
    at_one, at_eight = best_ratios_of(MEASURED)
    assert (at_one.peagle_depth, at_one.ratio) == (7, 1.5)
    assert (at_eight.peagle_depth, at_eight.ratio) == (3, 1.25)


def test_without_eagle3_there_is_no_ratio() -> None:
    alone = {(PEAGLE, 1): MEASURED[PEAGLE, 1]}
    assert (ratios_of(alone), best_ratios_of(alone)) == ((), ())
