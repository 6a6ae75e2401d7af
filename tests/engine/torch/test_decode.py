"""Speculation changes the speed and never the words; stops, candidates and clocks are as events say."""

import random
from collections import Counter
from collections.abc import Sequence
from typing import Literal

import msgspec
import pytest
import torch

from peagle_cli.engine.torch.context import Context
from peagle_cli.engine.torch.decode import Lane
from peagle_cli.engine.torch.drafter import MAX_DEPTH, Drafter
from peagle_cli.engine.torch.sampling import probabilities
from peagle_cli.engine.torch.target import Target
from peagle_cli.trace.events import DraftBatch, Method, Sampling
from tests.engine.torch import small

PROMPTS = ([0, 1, 2, 3, 4], [7], [5, 5, 9, 2, 11, 0, 3, 3])
GREEDY = Sampling()
DraftChoice = Literal["greedy", "sampled"]


class Bench:
    """The small models, and lanes over them."""

    def __init__(self, target: Target, drafters: Sequence[Drafter]) -> None:
        self.target = target
        self.drafters = {drafter.method: drafter for drafter in drafters}

    def context(self) -> Context:
        return Context(self.target, self.drafters, small.ALL_AUX_LAYERS)

    def lane(
        self,
        prompt: Sequence[int],
        method: Method = "none",
        depth: int = 0,
        sampling: Sampling = GREEDY,
        max_tokens: int = 60,
        candidates: int = 0,
        eos: Sequence[int] = (),
        context: Context | None = None,
    ) -> Lane:
        return Lane(
            "main",
            context or self.context(),
            small.tokenizer(eos),
            prompt,
            method=method,
            depth=depth,
            sampling=sampling,
            max_tokens=max_tokens,
            candidates=candidates,
        )

    def plain(self, prompt: Sequence[int], tokens: int) -> list[int]:
        return small.greedy_reply(self.target, prompt, tokens)


@pytest.fixture(scope="module")
def bench(small_target: Target, small_drafters: list[Drafter]) -> Bench:
    return Bench(small_target, small_drafters)


def finish(lane: Lane) -> list[DraftBatch]:
    batches = []
    while not lane.finished:
        batches.append(lane.step())
    return batches


def tokens(batches: Sequence[DraftBatch]) -> list[int]:
    return [token.id for batch in batches for token in batch.tokens]


@pytest.mark.parametrize("method", ["eagle3", "peagle"])
def test_greedy_speculation_equals_plain_decoding_at_every_depth(bench: Bench, method: Method) -> None:
    accepted: Counter[int] = Counter()
    for prompt in PROMPTS:
        expected = bench.plain(prompt, 40)
        for depth in range(MAX_DEPTH + 1):
            batches = finish(bench.lane(prompt, method, depth, max_tokens=40))
            assert tokens(batches) == expected
            assert {len(batch.drafted) for batch in batches[1:]} == {depth}
            accepted.update(batch.accepted for batch in batches if batch.drafted)
    assert accepted[0] and accepted[1] and accepted.total() > accepted[0] + accepted[1]  # all ways were walked


def test_method_and_depth_may_change_at_any_step(bench: Bench) -> None:
    methods: list[Method] = ["none", "eagle3", "peagle"]
    for seed in range(8):
        choice = random.Random(seed)
        prompt = PROMPTS[seed % 3]
        lane = bench.lane(prompt, max_tokens=80)
        batches = []
        while not lane.finished:
            lane.method, lane.depth = choice.choice(methods), choice.randint(0, MAX_DEPTH)
            batches.append(lane.step())
            if len(batches) > 1:
                assert batches[-1].method == lane.method
                assert len(batches[-1].drafted) == (0 if lane.method == "none" else lane.depth)
        assert tokens(batches) == bench.plain(prompt, 80)


def test_a_drafter_that_joins_late_drafts_as_if_it_had_been_there(bench: Bench) -> None:
    for method in ("eagle3", "peagle"):
        late, early = bench.lane(PROMPTS[0]), bench.lane(PROMPTS[0], method, 3)
        while len(late._context.tokens) < 30:
            late.step()
        while len(early._context.tokens) < 30:
            early.depth = min(3, 29 - len(early._context.tokens))
            early.step()
        assert late._context.tokens == early._context.tokens
        late.method, late.depth, early.depth = method, 5, 5
        assert late.step().drafted == early.step().drafted


def test_the_first_step_is_the_prefill(bench: Bench) -> None:
    first, second = (bench.lane([1, 2, 3], "peagle", 3) for _ in range(2))
    batch = first.step()
    assert (batch.prefill, batch.drafted, batch.accepted, batch.emitted, batch.step) == (3, (), 0, 1, 0)
    assert first.step().prefill == 0
    second.step()
    assert second.clock_s > 0


@pytest.mark.parametrize("method", ["none", "eagle3", "peagle"])
def test_a_later_turn_reuses_the_cache_and_says_the_same(bench: Bench, method: Method) -> None:
    context = bench.context()
    first = bench.lane(PROMPTS[0], method, 4, max_tokens=20, context=context)
    reply = tokens(finish(first))
    prompt = [*PROMPTS[0], *reply, 8, 3]
    second = bench.lane(prompt, method, 4, max_tokens=20, context=context)
    assert first.reused == 0
    assert (
        second.reused == len(prompt) - 3
    )  # all but the reply's last token, which was never processed, and the new ones
    batches = finish(second)
    assert batches[0].prefill == 3
    assert tokens(batches) == bench.plain(prompt, 20)

    edited = [*PROMPTS[0], *reply[:6], (reply[6] + 1) % small.VOCAB, 1]
    third = bench.lane(edited, method, 4, max_tokens=20, context=context)
    assert third.reused == len(PROMPTS[0]) + 6
    assert tokens(finish(third)) == bench.plain(edited, 20)


def test_the_same_prompt_again_is_processed_from_its_last_token(bench: Bench) -> None:
    context = bench.context()
    first = tokens(finish(bench.lane(PROMPTS[2], "eagle3", 3, context=context)))
    again = bench.lane(PROMPTS[2], "eagle3", 3, context=context)
    assert again.reused == len(PROMPTS[2]) - 1
    assert tokens(finish(again)) == first


@pytest.mark.parametrize("method", ["none", "eagle3", "peagle"])
def test_an_end_token_ends_the_reply_wherever_it_falls(bench: Bench, method: Method) -> None:
    cut_inside = 0
    for prompt in PROMPTS:
        expected = bench.plain(prompt, 60)
        for eos in set(expected):
            lane = bench.lane(prompt, method, 6, eos=[eos])
            batches = finish(lane)
            assert lane.finished == "stop"
            assert tokens(batches) == expected[: expected.index(eos) + 1]
            cut_inside += batches[-1].emitted <= batches[-1].accepted
    assert cut_inside or method == "none"  # an accepted draft ended a reply


@pytest.mark.parametrize("limit", [1, 2, 7, 20])
def test_the_token_limit_is_exact(bench: Bench, limit: int) -> None:
    lane = bench.lane(PROMPTS[0], "eagle3", 5, max_tokens=limit)
    assert tokens(finish(lane)) == bench.plain(PROMPTS[0], limit)
    assert lane.finished == "length"


@pytest.mark.parametrize("method", ["none", "eagle3", "peagle"])
def test_the_reply_ends_where_the_context_does(bench: Bench, method: Method) -> None:
    lane = bench.lane(PROMPTS[0], method, 7, max_tokens=10_000)
    batches = finish(lane)
    room = small.CONTEXT - len(PROMPTS[0])
    assert lane.finished == "context"
    assert tokens(batches) == bench.plain(PROMPTS[0], room)
    left = room
    for batch in batches:
        assert len(batch.drafted) < left  # no token is drafted that could not be emitted
        left -= batch.emitted
    assert batches[-1].depth == 7


def test_candidates_tell_what_both_models_thought(bench: Bench) -> None:
    for method in ("eagle3", "peagle"):
        plain, lane = bench.lane(PROMPTS[0], method, 4), bench.lane(PROMPTS[0], method, 4, candidates=3)
        batches = finish(lane)
        assert tokens(batches) == tokens(finish(plain))
        for batch in batches:
            assert len(batch.target) == len(batch.drafted)
            assert batch.bonus.alternatives[0].id == batch.bonus.id
            assert batch.bonus.alternatives[0].prob == batch.bonus.prob
            for i, (token, view) in enumerate(zip(batch.drafted, batch.target, strict=True)):
                assert token.alternatives[0].id == token.id
                assert token.prob == pytest.approx(token.alternatives[0].prob)
                assert len(token.alternatives) == len(view.candidates) == 3
                if i < batch.accepted:
                    assert view.candidates[0].id == token.id
                    assert view.candidates[0].prob == pytest.approx(view.prob)
                elif i == batch.accepted:
                    assert view.candidates == batch.bonus.alternatives
                assert view.threshold is None


def test_candidates_of_a_sampled_step_explain_the_decision(bench: Bench) -> None:
    sampling = Sampling(temperature=1.0, top_k=6, seed=3)
    lane = bench.lane(PROMPTS[0], "eagle3", 4, sampling, candidates=5)
    for batch in finish(lane):
        for i, view in enumerate(batch.target):
            if i <= batch.accepted:
                assert view.threshold is not None
                assert (view.threshold < view.prob) == (i < batch.accepted)
            else:
                assert view.threshold is None


def test_candidates_that_nobody_asked_for_are_not_there(bench: Bench) -> None:
    for batch in finish(bench.lane(PROMPTS[0], "peagle", 4)):
        assert batch.target == ()
        assert all(token.prob is None and not token.alternatives for token in (*batch.drafted, batch.bonus))


@pytest.mark.parametrize("drafts", ["greedy", "sampled"])
@pytest.mark.parametrize("method", ["none", "eagle3", "peagle"])
def test_a_seed_reproduces_the_reply(bench: Bench, method: Method, drafts: str) -> None:
    def reply(seed: int) -> list[int]:
        sampling = Sampling(
            temperature=1.2, top_p=0.95, seed=seed, drafts="greedy" if drafts == "greedy" else "sampled"
        )
        return tokens(finish(bench.lane(PROMPTS[0], method, 4, sampling)))

    assert reply(1) == reply(1)
    assert reply(1) != reply(2)


@pytest.mark.parametrize("drafts", ["greedy", "sampled"])
@pytest.mark.parametrize("method", ["eagle3", "peagle"])
def test_sampled_replies_follow_the_target(bench: Bench, method: Method, drafts: DraftChoice) -> None:
    """The first three tokens of many replies against their exact joint distribution."""
    sampling = Sampling(temperature=2.0, top_k=3)
    trials = 500
    prompt = PROMPTS[0]
    context = bench.context()
    seen: Counter[tuple[int, ...]] = Counter()
    for seed in range(trials):
        settings = msgspec.structs.replace(sampling, seed=seed, drafts=drafts)
        lane = bench.lane(prompt, method, 2, settings, max_tokens=3, context=context)
        seen[tuple(tokens(finish(lane)))] += 1

    expected: dict[tuple[int, ...], float] = {(): 1.0}
    for _ in range(3):
        expected = {
            (*reply, token): weight * prob
            for reply, weight in expected.items()
            for token, prob in enumerate(distribution(bench.target, [*prompt, *reply], sampling))
            if prob > 0
        }
    assert set(seen) <= set(expected)
    # Rare replies are pooled, so that Pearson's statistic holds.
    common = {reply: weight * trials for reply, weight in expected.items() if weight * trials >= 5}
    rest = trials - sum(common.values())
    pairs = [(seen[reply], mean) for reply, mean in common.items()]
    pairs.append((trials - sum(seen[reply] for reply in common), rest))
    statistic = sum((count - mean) ** 2 / mean for count, mean in pairs if mean > 0)
    freedom = len(pairs) - 1
    assert statistic < freedom + 3.3 * (2 * freedom) ** 0.5  # one in a thousand, by the normal approximation


def distribution(target: Target, ids: list[int], sampling: Sampling) -> list[float]:
    hidden, _ = target.forward(torch.tensor(ids), target.new_cache())
    row: list[float] = probabilities(target.logits(hidden[-1:])[0], sampling).tolist()
    return row
