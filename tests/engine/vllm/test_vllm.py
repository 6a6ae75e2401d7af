"""vLLM itself, with the default target and its drafters: the figures are its own, and what is asked for happens.

Needs vLLM; docs/vllm.md says how to come by it. In this order: later tests end servers.
"""

import itertools
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from queue import SimpleQueue
from typing import Any

import msgspec
import pytest

from peagle_cli.engine.open import open_engine
from peagle_cli.engine.protocol import (
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
from peagle_cli.engine.torch.engine import TorchEngine
from peagle_cli.engine.vllm.link import Told
from peagle_cli.engine.vllm.server import Counters
from peagle_cli.errors import BadInputError
from peagle_cli.models.progress import unheard
from peagle_cli.trace.events import UNKNOWN_ID, Changed, DraftBatch, Event, Failed, Finished, Method, Sampling, Started
from peagle_cli.trace.lossless import CANDIDATES, check, in_common
from peagle_cli.trace.metrics import Metrics
from tests.engine.vllm.conftest import Opened
from tests.engine.vllm.counting import (
    BREAKS_OFF,
    CROWD,
    STRUCTURED,
    ask_at_once,
    counted,
    counted_of,
    heard,
    preemptions,
    settled,
)

PROMPTS = (
    "Write a Python function that merges two sorted lists.",
    "Name the planets of the solar system, one a line.",
    "Explain in two sentences why the sky is blue.",
)
TOKENS = 64
DEPTH = 7


def request(prompt: str = PROMPTS[0], method: Method = "peagle", tokens: int = TOKENS, **more: Any) -> Request:
    lane = LaneSetting("chat", method, 0 if method == "none" else DEPTH)
    return Request((Message("user", prompt),), (lane,), more.pop("sampling", Sampling()), tokens, **more)


def batches(events: list[Event]) -> list[DraftBatch]:
    return [event for event in events if isinstance(event, DraftBatch)]


def said(events: list[Event]) -> list[int]:
    return [token.id for batch in batches(events) for token in batch.tokens]


def counters(opened: Opened, method: Method = "peagle") -> Counters:
    return settled(opened.servers.backend(method).server)


@pytest.fixture(scope="module")
def replies(opened: Opened) -> list[list[Event]]:
    """Every prompt answered, and the figures held against the server's on the way."""
    before = counters(opened)
    replies = [list(opened.engine.run(request(prompt, candidates=CANDIDATES))) for prompt in PROMPTS]
    assert counted(replies, DEPTH) == counters(opened).since(before)
    return replies


def test_opening_tells_how_far_it_is(opened: Opened) -> None:
    stages = [progress.stage for progress in opened.said]
    assert stages[0].startswith("Starting vLLM (P-EAGLE)")
    assert len(set(stages)) > 3
    info = opened.engine.info
    assert (info.engine, info.steerable, info.max_depths) == ("vllm", True, {"peagle": DEPTH, "eagle3": DEPTH})
    assert info.machine.dtype == "bfloat16"
    assert info.notes == ()


def test_figures_equal_the_servers_counters(replies: list[list[Event]]) -> None:
    for events in replies:
        started, finished = events[0], events[-1]
        assert isinstance(started, Started)
        assert isinstance(finished, Finished)
        assert finished.note == "", "no step was lost"
        first, *steps = batches(events)
        assert first.prefill == len(started.prompt_ids) - started.reused
        assert all(len(batch.drafted) == DEPTH and batch.draft_s > 0 and batch.verify_s > 0 for batch in steps)
        assert all(token.id != UNKNOWN_ID for batch in steps for token in batch.drafted)
        assert [batch.clock_s for batch in steps] == sorted(batch.clock_s for batch in steps)


@pytest.fixture(scope="module")
def embedded() -> TorchEngine:
    return TorchEngine.open(EngineSpec(dtype="bfloat16", device="cpu"))


def test_agrees_with_the_embedded_engine(replies: list[list[Event]], embedded: TorchEngine) -> None:
    """The same text up to rounding ties, and the same acceptance length within 2 %."""
    theirs = [list(embedded.run(request(prompt, candidates=CANDIDATES))) for prompt in PROMPTS]
    _agree(replies, theirs)


def _agree(replies: list[list[Event]], theirs: list[list[Event]]) -> None:
    ours_steps, their_steps = 0, 0
    for ours, other in zip(replies, theirs, strict=True):
        assert isinstance(ours[0], Started)
        assert isinstance(other[0], Started)
        assert ours[0].prompt_ids == other[0].prompt_ids
        found = check(batches(other), batches(ours), "bfloat16")
        assert found is None or found.verdict == "rounding tie", found
        alike = in_common(said(ours), said(other))
        ours_steps += _steps_within(alike, ours)
        their_steps += _steps_within(alike, other)
    # The same tokens, so the acceptance lengths differ as the steps do. In so few, one may go the other way at a tie.
    assert ours_steps == pytest.approx(their_steps, rel=0.02, abs=1)


def _steps_within(tokens: int, events: list[Event]) -> int:
    """The steps that begin within the first `tokens` of a reply."""
    starts = itertools.accumulate((len(batch.tokens) for batch in batches(events)), initial=0)
    return sum(start < tokens for start in list(starts)[:-1])


def test_depth_changes_at_the_next_step(opened: Opened) -> None:
    depths = []
    changed = []
    for event in opened.engine.run(request()):
        if isinstance(event, DraftBatch):
            depths.append(len(event.drafted))
            if event.step == 3:
                opened.engine.control(SetDepth("chat", 2))
        elif isinstance(event, Changed):
            changed.append((event.what, event.old, event.new))
    assert changed == [("depth", DEPTH, 2)]
    assert set(depths[1:4]) == {DEPTH}
    assert depths[-1] == 2
    assert depths[1:] == sorted(depths[1:], reverse=True)


def test_a_depth_beyond_the_servers_is_refused(opened: Opened) -> None:
    with pytest.raises(BadInputError, match="out of range"):
        opened.engine.control(SetDepth("chat", DEPTH + 1))


def test_a_reply_can_be_held_and_stepped(opened: Opened) -> None:
    events = opened.engine.run(request())
    next(events)
    opened.engine.control(Pause())
    inbox: list[Event] = []
    reader = threading.Thread(target=lambda: inbox.extend(events))
    reader.start()
    _wait_until_still(inbox)
    held = len(inbox)
    opened.engine.control(Step())
    _wait_until_still(inbox)
    assert len(inbox) == held + 1
    opened.engine.control(Resume())
    reader.join(120)
    assert isinstance(inbox[-1], Finished)
    assert inbox[-1].reason == "length"
    clocks = [batch.clock_s for batch in batches(inbox)]
    assert clocks[-1] < 60, "the clock stands still while it is held"


def _wait_until_still(inbox: list[Event]) -> None:
    size = -1
    while size != len(inbox):
        size = len(inbox)
        time.sleep(1.5)


def test_stop_ends_the_reply_on_the_server_too(opened: Opened) -> None:
    events = []
    for event in opened.engine.run(request(tokens=900)):
        events.append(event)
        if len(events) == 4:
            opened.engine.control(Stop())
    assert events[-1] == Finished("chat", "cancelled")
    assert counters(opened) == counters(opened), "nobody goes on"


def test_sampling_with_a_seed_has_the_targets_distribution(opened: Opened) -> None:
    """At a temperature close to 0 it must say what greedy decoding says: with vLLM's fault for CPUs it says anything.
    The prompt is long, and comes in parts: without our repair, a seed then ends the server."""
    before = counters(opened)
    prompt = "Count from 1 to 300. " * 40
    sampled = list(opened.engine.run(request(prompt, tokens=16, sampling=Sampling(temperature=0.001, seed=1))))
    assert batches(sampled)[0].prefill > 256
    assert counted([sampled], DEPTH) == counters(opened).since(before)
    assert said(sampled) == said(list(opened.engine.run(request(prompt, tokens=16))))


def test_the_tap_counts_what_the_server_counts_whatever_happens(opened: Opened) -> None:
    """Preempted requests, stop strings, structured output, a request that is broken off, and beside them the chat,
    which comes last and is the first to be preempted: its words stay its own."""
    backend = opened.servers.backend("peagle")
    assert backend.link is not None
    inbox: SimpleQueue[Any] = SimpleQueue()
    before, preempted = counters(opened), preemptions(backend.server)
    backend.link.listen("", inbox)  # every request there is
    prompt = "Tell me about the sea."
    asked = [*CROWD, (prompt, 60, {"stop": ["the"]}), (prompt, 60, STRUCTURED), (prompt, 60, BREAKS_OFF)]
    others = threading.Thread(target=ask_at_once, args=(backend, asked))
    others.start()
    first = inbox.get(timeout=60)
    events = list(opened.engine.run(request()))
    others.join(300)
    assert events[-1] == Finished("chat", "length"), "no step was lost"
    assert len(said(events)) == TOKENS
    since = counters(opened).since(before)
    backend.link.forget("")
    told = [first, *heard(inbox)]
    assert all(isinstance(each, Told) for each in told), "no step was lost"
    works = [each.work for each in told]
    ours = counted_of(works, DEPTH)
    unheard = ours.tokens - since.tokens
    assert 0 <= unheard <= 2 * (DEPTH + 1), "what the last steps said of the two that were ended from outside"
    assert ours == msgspec.structs.replace(since, tokens=ours.tokens)
    assert preemptions(backend.server) > preempted
    assert any(work.prefilled and work.position for work in works), "preempted in the midst of a reply"


@pytest.fixture
def address(opened: Opened) -> str:
    return opened.servers.backend("peagle").server.url


def test_attached_to_a_tapped_server(opened: Opened, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    link = opened.servers.backend("peagle").link
    assert link is not None
    monkeypatch.setenv("PEAGLE_TAP", link.address)
    with closing(open_engine(EngineSpec(engine=address), unheard)) as engine:
        assert engine.info.steerable
        assert engine.info.max_depths == {"peagle": DEPTH}
        before = counters(opened)
        events = list(engine.run(request(tokens=16)))
        assert counted([events], DEPTH) == counters(opened).since(before)


def test_attached_to_a_plain_server(
    opened: Opened, address: str, replies: list[list[Event]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its tap: accepted runs, and the server's counters."""
    monkeypatch.delenv("PEAGLE_TAP", raising=False)
    with closing(open_engine(EngineSpec(engine=address), unheard)) as engine:
        assert "has no tap" in engine.info.notes[0]
        before = counters(opened)
        lane = LaneSetting("chat", "other", DEPTH)
        events = list(engine.run(Request((Message("user", PROMPTS[0]),), (lane,), Sampling(), 16)))
        since = counters(opened).since(before)
        with pytest.raises(BadInputError, match="cannot be steered"):
            engine.control(Pause())
        with pytest.raises(BadInputError, match="seems to run on a CPU"):
            list(engine.run(Request((Message("user", PROMPTS[0]),), (lane,), Sampling(temperature=1.0), 16)))
    assert said(events) == said(replies[0])[:16]
    ours = Metrics(events)
    assert ours.accepted_tokens <= since.accepted_tokens <= ours.accepted_tokens + DEPTH, "but for what a stop cut"
    assert isinstance(events[-1], Finished)
    assert f"{since.drafts} drafts, {since.draft_tokens} tokens drafted" in events[-1].note
    assert events[-1].note.endswith("step by step as shown.")


def test_another_method_is_another_server(opened: Opened, replies: list[list[Event]]) -> None:
    """Mid-reply, too: the words go on where they were."""
    events = []
    for event in opened.engine.run(request()):
        events.append(event)
        if isinstance(event, DraftBatch) and event.step == 2:
            opened.engine.control(SetMethod("chat", "eagle3"))
    assert Changed("chat", "method", "peagle", "eagle3") in events
    assert [batch.method for batch in batches(events)][-1] == "eagle3"
    assert len(said(events)) == TOKENS
    assert said(events)[:12] == said(replies[0])[:12]


def test_eagle3_agrees_and_spares_itself_passes(opened: Opened, embedded: TorchEngine) -> None:
    before = counters(opened, "eagle3")
    asked = request(method="eagle3", candidates=CANDIDATES)
    events = list(opened.engine.run(asked))
    assert counted([events], DEPTH) == counters(opened, "eagle3").since(before)
    _agree([events], [list(embedded.run(asked))])
    shallow = []
    lane = LaneSetting("chat", "eagle3", 1)
    for event in opened.engine.run(Request((Message("user", PROMPTS[0]),), (lane,), Sampling(), TOKENS)):
        if isinstance(event, DraftBatch) and event.drafted:
            shallow.append(event)
    deep = [batch for batch in batches(events) if batch.drafted]
    assert min(batch.draft_s for batch in shallow[2:]) < min(batch.draft_s for batch in deep) / 2


def test_a_server_that_is_killed_is_a_failure(opened: Opened) -> None:
    events = []
    for event in opened.engine.run(request(tokens=900)):
        events.append(event)
        if len(events) == 4:
            for pid in _server_processes(opened.servers.backend("peagle").server.port):
                os.kill(pid, signal.SIGKILL)
    assert isinstance(events[-1], Failed)
    assert "killed" in events[-1].message
    assert len(said(events)) > 0


def _server_processes(port: int) -> Iterator[int]:
    """The server's own process, not its guard's."""
    for line in subprocess.check_output(["ps", "-eww", "-o", "pid,args"], text=True).splitlines():
        if f"--port {port}" in line and "engine.vllm.guard" not in line:
            yield int(line.split()[0])


def test_a_refused_flag_is_one_sentence(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadInputError, match="gives vLLM --model itself"):
        open_engine(EngineSpec(engine="vllm", flags=("--model", "x")), unheard)
