"""The engine in its process: the same events as in this one, and no end of it that is not told."""

import os
import shutil
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from peagle_cli.engine.logs import KEPT_LOGS
from peagle_cli.engine.open import open_engine, start_engine
from peagle_cli.engine.process import EngineProcess, Opening
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
from peagle_cli.errors import BadInputError, PeagleError
from peagle_cli.models.progress import Progress, unheard
from peagle_cli.trace.events import Changed, DraftBatch, Event, Failed, Finished, Sampling, Started


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("logs")
        patch.setenv("PEAGLE_LOG_DIR", str(folder))
        yield folder


@pytest.fixture(scope="module")
def engine(tiny_spec: EngineSpec, logs: Path) -> Iterator[EngineProcess]:
    engine = Opening(tiny_spec).wait(unheard)
    yield engine
    engine.close()


def request(prompt: str = "Hello", max_tokens: int = 30, depth: int = 5) -> Request:
    return Request(
        messages=(Message("user", prompt),),
        lanes=(LaneSetting("main", "peagle", depth),),
        sampling=Sampling(),
        max_tokens=max_tokens,
    )


def timeless(event: Event) -> Event:
    """An event without what differs from run to run."""
    if isinstance(event, DraftBatch):
        return msgspec.structs.replace(event, draft_s=0.0, verify_s=0.0, clock_s=0.0)
    return msgspec.structs.replace(event, reused=0, prompt_ids=()) if isinstance(event, Started) else event


def is_batch(event: Event) -> bool:
    return isinstance(event, DraftBatch) and not event.prefill


def test_yields_what_the_engine_yields(engine: EngineProcess, tiny_spec: EngineSpec) -> None:
    inside = TorchEngine.open(tiny_spec)
    assert engine.info == inside.info
    for depth in (0, 3):
        here, there = ([*each.run(request("The same", depth=depth))] for each in (inside, engine))
        assert isinstance(there[-1], Finished)
        assert [timeless(event) for event in there] == [timeless(event) for event in here]


def test_an_abandoned_request_leaves_nothing_to_the_next(engine: EngineProcess) -> None:
    abandoned = engine.run(request("First", max_tokens=3000))
    next(abandoned)
    abandoned.close()
    events = list(engine.run(request("Second", max_tokens=5)))
    assert isinstance(events[0], Started)
    assert events[0].prompt == "Second"
    assert isinstance(events[-1], Finished)
    assert events[-1].reason == "length"


def test_obeys_between_steps(engine: EngineProcess) -> None:
    events = engine.run(request(max_tokens=3000))
    next(event for event in events if is_batch(event))
    engine.control(SetDepth("main", 2))
    engine.control(SetMethod("main", "eagle3"))
    changes = [next(e for e in events if isinstance(e, Changed)) for _ in range(2)]
    assert [(change.what, change.new) for change in changes] == [("depth", 2), ("method", "eagle3")]
    batch = next(event for event in events if isinstance(event, DraftBatch))
    assert (batch.method, len(batch.drafted)) == ("eagle3", 2)
    engine.control(Stop())
    assert list(events)[-1] == Finished("main", "cancelled")


def test_pause_holds_until_stop(engine: EngineProcess) -> None:
    """Paused at once: the steps are exactly those that were asked for, and `Stop` need not wait for another."""
    events = engine.run(request(max_tokens=3000))
    assert isinstance(next(events), Started)
    for command in (Pause(), Step(), Step(), SetDepth("main", 1), Step(), Stop()):
        engine.control(command)
    rest = list(events)
    change = next(i for i, event in enumerate(rest) if isinstance(event, Changed))
    assert isinstance(rest[change + 1], DraftBatch)
    assert rest[change + 2 :] == [Finished("main", "cancelled")]


def test_a_command_without_a_request_does_nothing(engine: EngineProcess) -> None:
    engine.control(Stop())
    assert list(engine.run(request(max_tokens=4)))[-1] == Finished("main", "length")
    engine.control(Pause())
    assert list(engine.run(request(max_tokens=4)))[-1] == Finished("main", "length")


def test_refusals_reach_the_caller_and_the_engine_goes_on(engine: EngineProcess) -> None:
    with pytest.raises(BadInputError, match="empty") as caught:
        list(engine.run(request(" ")))
    assert caught.value.hint
    with pytest.raises(BadInputError, match="99"):
        engine.control(SetDepth("main", 99))
    with pytest.raises(BadInputError, match="tokens"):
        list(engine.run(request("word " * 5000)))
    assert list(engine.run(request(max_tokens=4)))[-1] == Finished("main", "length")


def test_says_how_loading_goes(tiny_spec: EngineSpec, logs: Path) -> None:
    said: list[Progress] = []
    open_engine(tiny_spec, said.append).close()
    assert said


def test_what_cannot_be_opened_is_bad_input(logs: Path) -> None:
    with pytest.raises(BadInputError, match="nonsense") as caught:
        open_engine(EngineSpec(model="nonsense"), unheard)
    assert caught.value.hint


def test_a_killed_engine_fails_the_reply(tiny_spec: EngineSpec, logs: Path) -> None:
    engine = Opening(tiny_spec).wait(unheard)
    events: list[Event] = []
    for event in engine.run(request(max_tokens=3000)):
        events.append(event)
        if is_batch(event) and engine_runs(engine.pid):
            os.kill(engine.pid, signal.SIGKILL)
    assert isinstance(failed := events[-1], Failed)
    assert "killed" in failed.message
    assert str(logs) in failed.hint
    assert isinstance(next(engine.run(request())), Failed), "there is nobody left to answer"
    engine.control(Resume())
    engine.close()
    engine.close()


def engine_runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_crash_tells_the_last_words_of_the_log(tiny_spec: EngineSpec, logs: Path) -> None:
    engine = Opening(tiny_spec).wait(unheard)
    events = engine.run(request(max_tokens=3000))
    next(events)
    os.kill(engine.pid, signal.SIGSEGV)
    assert isinstance(failed := list(events)[-1], Failed)
    assert "SIGSEGV" in failed.message
    assert "worker.py" in failed.hint, "faulthandler wrote where it was"
    engine.close()


def test_a_step_that_fails_ends_the_reply_and_not_the_engine(tiny_spec: EngineSpec, logs: Path, tmp_path: Path) -> None:
    assert tiny_spec.model
    folder = shutil.copytree(tiny_spec.model, tmp_path / "broken")
    weights = load_file(folder / "model.safetensors")
    weights["model.norm.weight"][:] = np.nan
    save_file(weights, folder / "model.safetensors")
    engine = Opening(msgspec.structs.replace(tiny_spec, model=str(folder))).wait(unheard)
    for temperature in (0.0, 1.0):
        asked = msgspec.structs.replace(request(), sampling=Sampling(temperature=temperature))
        assert isinstance(failed := list(engine.run(asked))[-1], Failed)
        assert "not numbers" in failed.message
        assert str(logs) in failed.hint
    engine.close()


def test_every_lane_of_a_broken_engine_fails(tiny_spec: EngineSpec, logs: Path) -> None:
    engine = Opening(tiny_spec).wait(unheard)
    lanes = (LaneSetting("a", "none", 0), LaneSetting("b", "peagle", 3))
    events = engine.run(msgspec.structs.replace(request(max_tokens=3000), lanes=lanes))
    next(events)
    os.kill(engine.pid, signal.SIGKILL)
    assert {event.lane for event in events if isinstance(event, Failed)} == {"a", "b"}
    engine.close()


def test_cancelling_the_loading_ends_the_waiting(tiny_spec: EngineSpec, logs: Path) -> None:
    opening = start_engine(tiny_spec)
    canceller = threading.Thread(target=opening.cancel)
    canceller.start()
    with pytest.raises(PeagleError):
        opening.wait(unheard)
    canceller.join()


def test_closing_ends_a_reply_that_another_thread_waits_for(tiny_spec: EngineSpec, logs: Path) -> None:
    engine = Opening(tiny_spec).wait(unheard)
    events: list[Event] = []
    begun = threading.Event()

    def read() -> None:
        for event in engine.run(request(max_tokens=3000)):
            events.append(event)
            begun.set()

    reader = threading.Thread(target=read)
    reader.start()
    begun.wait()
    engine.close()
    reader.join()
    assert isinstance(events[-1], Failed)


def test_keeps_only_the_latest_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEAGLE_LOG_DIR", str(tmp_path))
    for i in range(KEPT_LOGS + 5):
        (tmp_path / f"engine-20000101-0000{i:02}-1-1.log").touch()
    (tmp_path / "notes.log").touch()
    start_engine(EngineSpec()).cancel()
    logs = sorted(tmp_path.glob("engine-*.log"))
    assert len(logs) == KEPT_LOGS
    assert not logs[-1].name.startswith("engine-2000")
    assert (tmp_path / "notes.log").exists()


def test_a_log_folder_that_cannot_be_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("PEAGLE_LOG_DIR", str(tmp_path / "file" / "logs"))
    with pytest.raises(PeagleError, match="log folder") as caught:
        start_engine(EngineSpec())
    assert "PEAGLE_LOG_DIR" in caught.value.hint
