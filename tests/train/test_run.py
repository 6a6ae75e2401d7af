"""A training run from nothing to a drafter: interrupted, lengthened, refused."""

import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from msgspec.structs import replace
from safetensors.torch import load_file
from typer.testing import CliRunner

from peagle_cli.cli.train import train
from peagle_cli.engine.protocol import EngineSpec, LaneSetting, Message, Request
from peagle_cli.engine.torch.engine import TorchEngine
from peagle_cli.errors import BadInputError, PeagleError
from peagle_cli.recording.recording import Recording
from peagle_cli.text import json_document
from peagle_cli.trace.events import Finished, Sampling
from peagle_cli.train import loop
from peagle_cli.train.disk import held, in_turn, save_tensors
from peagle_cli.train.log import StepRecord, ValidationRecord, read_log
from peagle_cli.train.loop import Run
from peagle_cli.train.settings import End, Settings
from peagle_cli.train.snapshots import PROMPTS, Snapshot
from peagle_cli.train.trainer import open_run
from tests import evaluations
from tests.train.conftest import CPU

SETTINGS = Settings(method="peagle", layers=2, intermediate=32, draft_vocab=300, depth=4, batch_tokens=256)
SHORT = replace(SETTINGS, end=End(epochs=2, decay=0.25))


class Watcher:
    """Hears everything; `stop_at` breaks the run off as a kill would: nothing more is saved."""

    def __init__(self, stop_at: int | None = None) -> None:
        self.stop_at = stop_at
        self.steps: list[StepRecord] = []
        self.snapshots: list[Snapshot] = []

    def stepped(self, record: StepRecord) -> None:
        self.steps.append(record)
        if self.stop_at and record.step >= self.stop_at:
            raise KeyboardInterrupt

    def validated(self, record: ValidationRecord, snapshot: Snapshot) -> None:
        self.snapshots.append(snapshot)


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "CHECKPOINT_S", 0.0)
    monkeypatch.setattr(loop, "RECORD_STEPS", 2)


@pytest.fixture(scope="session")
def states(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("states")


@pytest.fixture
def opened(target_folder: Path, data_file: Path, states: Path, tmp_path: Path, often: None) -> Any:
    def opened(name: str, settings: Settings = SHORT, watcher: Watcher | None = None, start: Path | None = None) -> Run:
        folder = tmp_path / name
        return open_run(folder, settings, target_folder, data_file, None, states, start, CPU, watcher or Watcher())

    return opened


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "drafter" / "model.safetensors")


def test_a_run_leaves_a_drafter_a_log_and_a_recording(opened: Any, tmp_path: Path, target_folder: Path) -> None:
    watcher = Watcher()
    opened("run", watcher=watcher).go()
    log = read_log(tmp_path / "run" / "log.jsonl")
    steps = [record for record in log if isinstance(record, StepRecord)]
    assert steps == watcher.steps
    assert steps[-1].loss < steps[0].loss
    assert len(steps[0].accuracy) == 4
    assert steps[-1].rate < steps[0].rate
    assert isinstance(log[-1], ValidationRecord)
    assert set(log[-1].acceptance_length) == {3, 5, 7}

    engine = TorchEngine.open(
        EngineSpec(model=str(target_folder), drafters=(str(tmp_path / "run/drafter"),), device="cpu", dtype="float32")
    )
    request = Request((Message("user", "Hello"),), (LaneSetting("a", "peagle", 7),), Sampling(), 20)
    assert isinstance(list(engine.run(request))[-1], Finished)

    recording = Recording.load(tmp_path / "run" / "snapshots.peagle.jsonl")
    assert [run.asked.messages[-1].content for run in recording.runs] == list(PROMPTS) * len(watcher.snapshots)
    assert all(run.whole for run in recording.runs)


def test_a_card_tells_what_the_run_was(opened: Any, tmp_path: Path) -> None:
    opened("run").go()
    evaluation = tmp_path / "evaluation.json"
    evaluation.write_text(json_document([evaluations.OURS, evaluations.THEIRS]))
    (tmp_path / "about.md").write_text("Written by the target.")
    arguments = ["--run", tmp_path / "run", "--evaluation", evaluation, "--about", tmp_path / "about.md"]
    result = CliRunner().invoke(train, ["card", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    card = (tmp_path / "run" / "drafter" / "README.md").read_text()
    assert "# P-EAGLE drafter for target" in card
    assert "Written by the target." in card
    assert "| layers | 2 |" in card
    assert "| 3 | 2.25 | .75 .25 .25 |" in card
    assert "| P-EAGLE on mt_bench | 3 | 2 | 2.25 | 1.80 | -20.0% | 70% | +0.0% |" in card
    assert str(tmp_path) not in card
    assert "<polyline" in (tmp_path / "run" / "drafter" / "training.svg").read_text()


def test_an_interrupted_run_ends_as_if_it_had_not_been(opened: Any, tmp_path: Path) -> None:
    opened("whole").go()
    with pytest.raises(KeyboardInterrupt):
        opened("cut", watcher=Watcher(stop_at=6)).go()
    (tmp_path / "cut" / "log.jsonl").open("a").write('{"type":"steps","st')  # the kill came while writing
    run = opened("cut")
    assert 0 < run.position.step <= 6
    run.go()
    for name, tensor in weights(tmp_path / "whole").items():
        torch.testing.assert_close(weights(tmp_path / "cut")[name], tensor, rtol=0, atol=0, msg=name)
    steps = [record.step for record in read_log(tmp_path / "cut" / "log.jsonl")]
    assert steps == sorted(steps)


def test_a_longer_run_goes_on_from_before_the_decay(opened: Any, tmp_path: Path) -> None:
    opened("short").go()
    longer = replace(SETTINGS, end=End(epochs=3, decay=0.25))
    run = opened("short", longer)
    assert run.position.tokens < 0.9 * 2 / 3 * 3 * run._training.tokens
    run.go()
    opened("long", longer).go()
    for name, tensor in weights(tmp_path / "long").items():
        torch.testing.assert_close(weights(tmp_path / "short")[name], tensor, rtol=0, atol=0, msg=name)


def test_a_finished_run_stays_as_it_is(opened: Any, tmp_path: Path) -> None:
    opened("run").go()
    before = weights(tmp_path / "run")
    watcher = Watcher()
    opened("run", watcher=watcher).go()
    assert not watcher.steps
    assert all(torch.equal(tensor, before[name]) for name, tensor in weights(tmp_path / "run").items())


def test_peagle_starts_from_an_eagle3_drafter(opened: Any, tmp_path: Path) -> None:
    opened("eagle3", replace(SHORT, method="eagle3", layers=1)).go()
    run = opened("peagle", start=tmp_path / "eagle3" / "drafter")
    started = run._drafter.layer_list[0].gate.detach()
    torch.testing.assert_close(
        started.bfloat16(), weights(tmp_path / "eagle3")["layers.0.mlp.gate_proj.weight"], rtol=0, atol=0
    )


def test_only_a_drafter_can_be_a_start(opened: Any, target_folder: Path, tmp_path: Path) -> None:
    for folder in (target_folder, tmp_path):
        with pytest.raises(BadInputError, match="holds no drafter"):
            opened("run", start=folder)


def test_another_shape_in_the_same_folder_is_refused(opened: Any) -> None:
    opened("run").go()
    with pytest.raises(BadInputError, match="other sizes"):
        opened("run", replace(SHORT, layers=3))


def test_a_killed_process_goes_on(target_folder: Path, data_file: Path, states: Path, tmp_path: Path) -> None:
    arguments = ["train", "run", "--method", "eagle3", "--model", target_folder, "--data", data_file, "--out"]
    arguments += [tmp_path / "run", "--states", states, "--draft-vocab", "300", "--device", "cpu", "--epochs", "400"]
    code = "from peagle_cli.train import loop; loop.CHECKPOINT_S = 0; from peagle_cli.cli.app import main; main()"
    process = subprocess.Popen([sys.executable, "-c", code, *map(str, arguments)], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not (tmp_path / "run" / "latest.safetensors").exists() and time.monotonic() < deadline:
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    settings = Settings(method="eagle3", draft_vocab=300, end=End(epochs=0.5))
    run = open_run(tmp_path / "run", settings, target_folder, data_file, None, states, None, CPU, Watcher())
    assert run.position.step > 0
    run.go()
    assert weights(tmp_path / "run")


def test_a_run_and_a_data_file_are_written_by_one_process_at_a_time(
    target_folder: Path, data_file: Path, tmp_path: Path
) -> None:
    model = ["--model", str(target_folder)]
    for what in ("run", "data.jsonl"):
        place = tmp_path / what
        arguments = ["data"] if place.suffix else ["run", "--method", "eagle3", "--data", str(data_file)]
        place.touch() if place.suffix else place.mkdir()
        before = place.stat()
        with held(place):
            result = CliRunner().invoke(train, [*arguments, "--out", str(place), *model])
        assert isinstance(result.exception, BadInputError)
        assert "Another peagle is writing" in str(result.exception)
        assert place.stat() == before


def test_runs_on_the_same_data_wait_for_each_others_states(opened: Any, states: Path, tmp_path: Path) -> None:
    opened("run")
    shard = next((states / "training").iterdir())
    kept = shard.read_bytes()
    shard.unlink()
    with ThreadPoolExecutor() as pool, in_turn(shard.parent):  # the pool waits for its thread last
        waiting = pool.submit(opened, "other")
        with pytest.raises(TimeoutError):
            waiting.result(timeout=2)
        shard.write_bytes(kept)
        written = shard.stat()
    waiting.result()
    assert shard.stat().st_mtime_ns == written.st_mtime_ns


@contextmanager
def limited_files(size: int) -> Iterator[None]:
    """No file can grow beyond `size` bytes."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_full_disk_is_a_sentence_and_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "latest.safetensors"
    save_tensors({"a": torch.ones(3)}, path)
    with limited_files(1 << 16), pytest.raises(PeagleError, match="could not be written"):
        save_tensors({"a": torch.ones(1 << 20)}, path)
    assert load_file(path)["a"].shape == (3,)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_a_recording_is_not_lost_to_a_full_disk(opened: Any, tmp_path: Path) -> None:
    opened("run").go()
    recording = tmp_path / "run" / "snapshots.peagle.jsonl"
    before = recording.read_bytes()
    with limited_files(len(before) // 2), pytest.raises(PeagleError, match="could not be written"):
        opened("run")
    assert recording.read_bytes() == before


def test_a_file_is_no_place_for_a_run(opened: Any, tmp_path: Path) -> None:
    (tmp_path / "run").touch()
    with pytest.raises(BadInputError, match="is a file"):
        opened("run")


def test_rates_that_lead_nowhere_are_told(opened: Any) -> None:
    with pytest.raises(PeagleError, match="is not a number"):
        opened("run", replace(SHORT, matrix_rate=1e30, head_rate=1e30)).go()
