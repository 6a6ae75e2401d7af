"""The embedded engine as its callers see it: requests, events, commands, refusals, and the real model."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from peagle_cli.engine.protocol import (
    Command,
    EngineSpec,
    LaneSetting,
    Message,
    Pause,
    Request,
    Resume,
    SetDepth,
    SetMethod,
    Step,
    Stop,
)
from peagle_cli.engine.torch.drafter import MAX_DEPTH, Drafter
from peagle_cli.engine.torch.engine import TorchEngine
from peagle_cli.engine.torch.target import Target
from peagle_cli.errors import BadInputError
from peagle_cli.trace.events import Changed, DraftBatch, Event, Failed, Finished, Method, Sampling, Started
from peagle_cli.trace.metrics import Metrics
from tests.engine.torch import small


@pytest.fixture
def engine(small_target: Target, small_drafters: list[Drafter]) -> TorchEngine:
    return small.engine(small_target, small_drafters)


def request(
    text: str = "abcabc", method: Method = "eagle3", depth: int = 3, tokens: int = 30, **others: Any
) -> Request:
    lanes = (LaneSetting("main", method, depth),)
    return Request(
        **{
            "messages": (Message("user", text),),
            "lanes": lanes,
            "sampling": Sampling(),
            "max_tokens": tokens,
            **others,
        }
    )


def batches(events: Sequence[Event], lane: str = "main") -> list[DraftBatch]:
    return [event for event in events if isinstance(event, DraftBatch) and event.lane == lane]


def text(events: Sequence[Event], lane: str = "main") -> str:
    return "".join(token.text for batch in batches(events, lane) for token in batch.tokens)


def run_with(engine: TorchEngine, asked: Request, commands: dict[int, list[Command]]) -> list[Event]:
    """All events of a request; `commands[n]` are given after the n-th batch."""
    events: list[Event] = []
    for event in engine.run(asked):
        events.append(event)
        if isinstance(event, DraftBatch):
            for command in commands.get(len(batches(events)), []):
                engine.control(command)
    return events


def test_a_reply_is_started_batches_finished(engine: TorchEngine, small_target: Target) -> None:
    first, *steps, last = engine.run(request("abcabc", tokens=20))
    assert isinstance(first, Started)
    assert first.prompt == "abcabc"
    assert first.prompt_ids == (0, 1, 2, 0, 1, 2)
    assert first.drafter == "small eagle3"
    assert first.machine == engine.info.machine
    assert last == Finished("main", "length")
    assert [step.step for step in batches(steps)] == list(range(len(steps)))
    assert text(steps) == "".join(small.LETTERS[i] for i in small.greedy_reply(small_target, first.prompt_ids, 20))


def test_depth_and_method_change_between_two_steps(engine: TorchEngine) -> None:
    commands: dict[int, list[Command]] = {
        3: [SetDepth("main", 1)],
        6: [SetMethod("main", "peagle"), SetDepth("main", 5)],
        9: [SetMethod("main", "none"), SetDepth("another", 2)],
    }
    events = run_with(engine, request(depth=3, tokens=40), commands)
    assert [event for event in events if isinstance(event, Changed)] == [
        Changed("main", "depth", 3, 1),
        Changed("main", "method", "eagle3", "peagle"),
        Changed("main", "depth", 1, 5),
        Changed("main", "method", "peagle", "none"),
    ]
    drafted = [(batch.method, len(batch.drafted)) for batch in batches(events)]
    assert drafted[1:9] == [("eagle3", 3)] * 2 + [("eagle3", 1)] * 3 + [("peagle", 5)] * 3
    assert set(drafted[9:]) == {("none", 0)}
    assert text(events) == text(list(engine.run(request(method="none", tokens=40))))


def test_stop_takes_effect_before_the_next_step(engine: TorchEngine) -> None:
    events = run_with(engine, request(tokens=1000), {4: [Stop()]})
    assert len(batches(events)) == 4
    assert events[-1] == Finished("main", "cancelled")


def test_commands_without_a_request_or_for_an_earlier_one_do_nothing(engine: TorchEngine) -> None:
    engine.control(Stop())
    events = list(engine.run(request(tokens=10)))
    assert events[-1] == Finished("main", "length")
    engine.control(Stop())
    assert list(engine.run(request(tokens=10)))[-1] == Finished("main", "length")


def test_a_paused_reply_goes_on_a_step_at_a_time(engine: TorchEngine) -> None:
    # Given together, so that the queue never runs dry while paused: that would wait for another thread.
    commands: dict[int, list[Command]] = {
        2: [Pause(), SetDepth("main", 1), Step()],
        3: [SetDepth("main", 2), Step()],
        4: [Resume()],
    }
    events = run_with(engine, request(depth=3, tokens=30), commands)
    assert [len(batch.drafted) for batch in batches(events)][1:5] == [3, 1, 2, 2]
    stopped = run_with(engine, request(tokens=30), {3: [Pause(), Stop()]})
    assert len(batches(stopped)) == 3


def test_lanes_race_by_their_own_clocks(engine: TorchEngine) -> None:
    lanes = (LaneSetting("slow", "none", 0), LaneSetting("fast", "eagle3", 4))
    events = list(engine.run(request(tokens=40, lanes=lanes)))
    assert text(events, "slow") == text(events, "fast")
    assert {event.lane for event in events if isinstance(event, Finished)} == {"slow", "fast"}
    clocks = {"slow": 0.0, "fast": 0.0}
    running = set(clocks)
    for event in events:
        if isinstance(event, DraftBatch):
            assert clocks[event.lane] == min(clocks[lane] for lane in running)
            clocks[event.lane] += event.draft_s + event.verify_s
            assert event.clock_s == pytest.approx(clocks[event.lane])
        elif isinstance(event, Finished):
            running.remove(event.lane)


def test_a_second_turn_reuses_the_cache_of_its_lane(engine: TorchEngine) -> None:
    first = text(list(engine.run(request("abcabc", tokens=12))))
    turns = (Message("user", "abcabc"), Message("assistant", first), Message("user", "dd"))
    started, *events = engine.run(request(messages=turns, tokens=12))
    assert isinstance(started, Started)
    assert started.reused == 6 + 12 - 1
    fresh = list(engine.run(request(messages=turns, tokens=12, lanes=(LaneSetting("other", "none", 0),))))
    assert text(events) == text(fresh, "other")
    assert isinstance(fresh[0], Started)
    assert fresh[0].reused == 0


def test_a_reply_may_be_abandoned(engine: TorchEngine) -> None:
    expected = text(list(engine.run(request(tokens=20))))
    events: Iterator[Event] = engine.run(request(tokens=20))
    for _ in range(5):
        next(events)
    events.close()  # type: ignore[attr-defined]  # the protocol says Iterator; ours is a generator
    assert text(list(engine.run(request(tokens=20)))) == expected


def test_what_breaks_becomes_an_event_and_the_next_request_is_served(
    engine: TorchEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = engine.run(request(tokens=20))
    next(events)
    next(events)
    with monkeypatch.context() as patch:
        patch.setattr(Target, "forward", lambda *_: 1 / 0)
        failed = next(events)
    assert isinstance(failed, Failed)
    assert "division by zero" in failed.message
    assert list(events) == []
    assert list(engine.run(request(tokens=20)))[-1] == Finished("main", "length")


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        (request(""), "prompt is empty"),
        (request(" \n"), "prompt is empty"),
        (request("a" * small.CONTEXT), "160 tokens"),
        (request(depth=MAX_DEPTH + 1), "depth of 11"),
        (request(depth=-1), "depth of -1"),
        (request(method="none", depth=99), "depth of 99"),
        (request(tokens=0), "0 tokens"),
        (request(lanes=()), "one lane"),
        (request(lanes=(LaneSetting("a", "none", 0),) * 2), "different names"),
        (request(candidates=1000), "1000 candidates"),
        (request(sampling=Sampling(temperature=-1.0)), "temperature"),
        (request(sampling=Sampling(temperature=float("nan"))), "temperature"),
        (request(sampling=Sampling(top_p=0.0)), "top-p"),
        (request(sampling=Sampling(top_k=-1)), "top-k"),
        (request(sampling=Sampling(seed=-1)), "seed"),
    ],
)
def test_requests_that_cannot_be_served_are_refused(engine: TorchEngine, asked: Request, complaint: str) -> None:
    with pytest.raises(BadInputError, match=complaint):
        engine.run(asked)


def test_a_method_without_a_drafter_is_refused(small_target: Target, small_drafters: list[Drafter]) -> None:
    engine = small.engine(small_target, small_drafters[:1])
    assert engine.info.methods == ("none", "eagle3")
    with pytest.raises(BadInputError, match="no P-EAGLE drafter"):
        engine.run(request(method="peagle"))
    with pytest.raises(BadInputError, match="no P-EAGLE drafter"):
        engine.control(SetMethod("main", "peagle"))
    with pytest.raises(BadInputError, match="depth of 99"):
        engine.control(SetDepth("main", 99))


def test_opening_checks_what_it_is_given(default_target: Path, tmp_path: Path, small_target: Target) -> None:
    small.write_drafter(tmp_path / "drafter", small_target, "eagle3")
    with pytest.raises(BadInputError, match="vocabulary"):
        TorchEngine.open(EngineSpec(drafters=(str(tmp_path / "drafter"),)))
    with pytest.raises(BadInputError, match="no device"):
        TorchEngine.open(EngineSpec(device="toaster"))
    with pytest.raises(BadInputError, match="cpu:1"):
        TorchEngine.open(EngineSpec(device="cpu:1"))


PROSE = ("Write a Python function that merges two sorted lists.", "What is the sun?")
SPECULATIVE: tuple[tuple[Method, int], ...] = (("eagle3", 5), ("peagle", 3), ("peagle", 7))


@pytest.mark.parametrize("prompt", PROSE)
def test_the_real_model_says_the_same_with_every_drafter(real_engine: TorchEngine, prompt: str) -> None:
    expected = text(list(real_engine.run(request(prompt, "none", 0, tokens=24))))
    for method, depth in SPECULATIVE:
        events = list(real_engine.run(request(prompt, method, depth, tokens=24)))
        assert text(events) == expected
        assert (Metrics(events).mean_acceptance_length or 0) > 1.2


def test_bfloat16_parts_from_float32_only_at_ties(real_engine: TorchEngine) -> None:
    """Where a bfloat16 reply leaves the float32 one, both tokens were nearly as likely."""
    rounded = TorchEngine.open(EngineSpec(dtype="bfloat16", device="cpu"))
    for prompt in PROSE:
        exact = batches(list(real_engine.run(request(prompt, "none", 0, tokens=24, candidates=2))))
        for method, depth in SPECULATIVE:
            events = list(rounded.run(request(prompt, method, depth, tokens=24)))
            reply = [token.id for batch in batches(events) for token in batch.tokens]
            parted = next((i for i, b in enumerate(exact) if i < len(reply) and reply[i] != b.bonus.id), None)
            if parted is not None:
                best, second = exact[parted].bonus.alternatives
                assert reply[parted] == second.id
                assert second.prob > 0.6 * best.prob  # half a logit
    rounded.close()
