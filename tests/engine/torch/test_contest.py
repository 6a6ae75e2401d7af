"""Rounds run by the embedded engine, and their comparison: figures follow from events, and lossy engines are caught."""

from collections.abc import Sequence
from typing import Any

import pytest

from peagle_cli.engine import contest
from peagle_cli.engine.contest import Contest, settings_for
from peagle_cli.engine.torch import decode
from peagle_cli.engine.torch.context import Context
from peagle_cli.engine.torch.drafter import Drafter
from peagle_cli.engine.torch.engine import TorchEngine
from peagle_cli.engine.torch.target import Target
from peagle_cli.engine.torch.verify import Verdict
from peagle_cli.prompts import Prompt
from peagle_cli.trace.comparison import Report, compare
from peagle_cli.trace.events import DraftBatch, Sampling, Started
from peagle_cli.trace.lossless import judge
from peagle_cli.trace.rounds import PLAIN, Round, Setting
from tests.engine.torch import small

PROMPTS = (Prompt(("abc", "cab"), "turns"), Prompt(("bcdbcd",), "one"), Prompt(("ffgh",), "one"))
SETTINGS: tuple[Setting, ...] = (PLAIN, ("eagle3", 3), ("peagle", 2), ("peagle", 5))


@pytest.fixture
def engine(small_target: Target, small_drafters: list[Drafter]) -> TorchEngine:
    return small.engine(small_target, small_drafters)


def a_contest(**changed: Any) -> Contest:
    return Contest(
        **{"settings": SETTINGS, "prompts": PROMPTS, "repeats": 1, "sampling": Sampling(), "max_tokens": 24, **changed}
    )


def rounds_of(engine: TorchEngine, asked: Contest) -> list[Round]:
    return list(dict.fromkeys(current for current, _ in contest.play(engine, asked)))


def report_on(engine: TorchEngine, asked: Contest) -> Report:
    steps = list(contest.sweep(engine, asked))
    return compare(rounds_of(engine, asked), asked.repeats, engine.info.footprints, steps)


def test_every_lane_answers_every_turn_on_its_own_cache(engine: TorchEngine) -> None:
    asked = a_contest(repeats=2)
    played = list(contest.play(engine, asked))
    rounds, events = list(dict.fromkeys(current for current, _ in played)), [event for _, event in played]
    assert len(rounds) == asked.size == 8
    assert [each.category for each in rounds] == ["turns", "turns", "one", "one"] * 2
    started = [event for event in events if isinstance(event, Started)]
    assert len({event.lane for event in started}) == len(started) == 8 * len(SETTINGS)
    assert all(event.reused == 0 for event in started), "each reply pays for its own prompt"
    for each in rounds:
        assert set(each.replies) == set(SETTINGS)
        assert len({reply.started.prompt_ids for reply in each.replies.values()}) == 1
    first, second = rounds[:2]
    assert second.replies[PLAIN].started.prompt == "cab"
    assert len(second.replies[PLAIN].started.prompt_ids) == len("abc") + len(first.replies[PLAIN].text) + len("cab")
    assert started[0].lane.split()[0] != started[len(SETTINGS)].lane.split()[0], "another lane begins each round"


def test_the_sweep_steps_at_every_depth(engine: TorchEngine) -> None:
    steps = list(contest.sweep(engine, a_contest()))
    assert not any(batch.prefill for batch in steps)
    depths = {(batch.method, batch.depth) for batch in steps}
    assert depths == {PLAIN, *((method, depth) for method in ("eagle3", "peagle") for depth in range(1, 11))}


def test_the_report_adds_up(engine: TorchEngine) -> None:
    asked = a_contest()
    rounds = rounds_of(engine, asked)
    report = compare(rounds, 1, engine.info.footprints, contest.sweep(engine, asked))
    assert [(lane.method, lane.depth) for lane in report.lanes] == list(SETTINGS)
    assert report.lossless.verdict == "identical"
    assert "Same tokens in every lane" in report.verdict
    assert report.prompts == 4
    plain, eagle3, *_ = report.lanes
    assert plain.speedup == 1
    assert plain.mean_acceptance_length is None
    assert plain.tokens_per_second and eagle3.tokens_per_second
    assert plain.speedup_over_eagle3 == pytest.approx(plain.tokens_per_second / eagle3.tokens_per_second)
    for lane in report.lanes:
        batches = [b for each in rounds for b in each.replies[lane.method, lane.depth].batches]
        assert lane.tokens == sum(b.emitted for b in batches)
        assert lane.accepted_tokens == sum(b.accepted for b in batches)
        assert lane.elapsed_s == pytest.approx(sum(b.draft_s + b.verify_s for b in batches))
        assert set(lane.categories) == {"turns", "one"}
        low, high = lane.tokens_per_second_quartiles or (0, 0)
        assert low <= (lane.tokens_per_second or 0) <= high
    assert report.advice is not None
    assert set(report.advice.categories) == {"turns", "one"}


def test_memory_is_that_of_the_weights_and_caches(engine: TorchEngine, small_target: Target) -> None:
    plain, eagle3, _, peagle = report_on(engine, a_contest()).lanes
    assert plain.memory and eagle3.memory and peagle.memory
    cache = small_target.new_cache()
    per_token = sum(layer.whole[:, 0].nbytes for layer in cache.layers)
    assert plain.memory.target_kv_cache % per_token == 0
    assert plain.memory.drafter_weights == plain.memory.draft_attention_mflop == 0
    assert peagle.memory.drafter_kv_cache == 2 * eagle3.memory.drafter_kv_cache, "two layers against one"
    assert peagle.memory.draft_attention_mflop > 2 * eagle3.memory.draft_attention_mflop > 0


def test_settings_are_every_method_at_every_depth(engine: TorchEngine) -> None:
    info = engine.info
    assert settings_for(info.drafters, (), (3, 7), baseline=True) == (
        PLAIN,
        ("eagle3", 3),
        ("eagle3", 7),
        ("peagle", 3),
        ("peagle", 7),
    )
    assert settings_for(info.drafters, ("peagle",), (3, 3), baseline=False) == (("peagle", 3),)
    assert settings_for(info.drafters, ("none", "eagle3"), (0, 2), baseline=True) == (PLAIN, ("eagle3", 2))


def test_sampled_replies_and_lanes_without_a_baseline_are_not_judged(engine: TorchEngine) -> None:
    sampled = rounds_of(engine, a_contest(sampling=Sampling(temperature=1.0, seed=1)))
    assert judge(sampled).verdict == "not checked"
    alone = rounds_of(engine, a_contest(settings=SETTINGS[1:]))
    assert judge(alone).verdict == "not checked"


def believes_the_drafter(drafts: Sequence[int], choices: Sequence[int]) -> Verdict:
    return Verdict(min(1, len(drafts)), choices[min(1, len(drafts))])


def test_an_engine_that_accepts_what_the_target_did_not_choose_is_caught(
    engine: TorchEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decode, "verify_greedy", believes_the_drafter)
    report = report_on(engine, a_contest())
    assert report.lossless.verdict == "NOT LOSSLESS"
    assert "the target itself preferred" in report.lossless.sentence
    assert "NOT LOSSLESS" in report.verdict
    plain, *drafting = report.lossless.lanes
    assert plain.lossy == 0
    assert all(lane.lossy > 0 for lane in drafting)


def test_an_engine_that_feeds_the_target_wrongly_is_caught(
    engine: TorchEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every token is the target's choice, but of a target that saw the rejected drafts too."""
    honest = Context.append

    def never_rolls_back(self: Context, tokens: Sequence[int]) -> None:
        length = self._cache.length
        honest(self, tokens)
        self._cache.length = length

    monkeypatch.setattr(Context, "append", never_rolls_back)
    found = judge(rounds_of(engine, a_contest(settings=(PLAIN, ("peagle", 5)))))
    assert found.verdict == "NOT LOSSLESS"
    assert "moved by" in found.sentence


def test_one_that_stops_early_is_caught(engine: TorchEngine) -> None:
    (each,) = rounds_of(engine, a_contest(prompts=PROMPTS[1:2]))
    reply = each.replies["peagle", 5]
    del reply.batches[-1]
    found = judge([each])
    assert found.verdict == "NOT LOSSLESS"
    assert "it ends after" in found.sentence


def test_what_was_measured_is_what_the_events_say(engine: TorchEngine) -> None:
    """The same events give the same report."""
    asked = a_contest()
    events = [(current, event) for current, event in contest.play(engine, asked)]
    rounds = list(dict.fromkeys(current for current, _ in events))
    again = [Round(each.category, (event for current, event in events if current is each)) for each in rounds]
    assert compare(again, 1, {}) == compare(rounds, 1, {})
    assert any(isinstance(event, DraftBatch) and event.target for _, event in events), "candidates for the check"
