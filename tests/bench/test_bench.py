"""What is measured adds up, other programs answer the same prompts, and the command says what it found."""

import sys
from pathlib import Path

import msgspec
import pytest

from peagle_cli.bench import steps
from peagle_cli.bench.peers import Lane, Order, start
from peagle_cli.bench.report import Report, Speed, Spread, lines
from peagle_cli.bench.speed import SpeedTest, started
from peagle_cli.engine.protocol import EngineSpec
from peagle_cli.engine.torch.engine import TorchEngine
from peagle_cli.errors import PeagleError
from peagle_cli.models.progress import unheard
from peagle_cli.trace.rounds import PLAIN

PYTHONS = [Path(sys.executable)]


@pytest.fixture
def transformers_lane(tiny_spec: EngineSpec) -> Lane:
    return Lane(Order("transformers", str(tiny_spec.model), threads=1, context=512))


def test_ours_and_others_are_measured_prompt_by_prompt(tiny_engine: TorchEngine, transformers_lane: Lane) -> None:
    with started([transformers_lane], PYTHONS, unheard) as (peers, absent):
        test = SpeedTest(tiny_engine, [PLAIN, ("peagle", 3)], peers, ["One.", "Two."], 32, unheard)
        plain, peagle, other = test.measure()
    assert not absent
    assert (plain.program, peagle.method, peagle.depth, other.program) == ("peagle", "peagle", 3, "transformers")
    assert plain.over_plain == Spread(1, 1, 1)
    assert plain.step and plain.step.accepted_length == 1 and plain.step.draft_s < plain.step.verify_s
    assert peagle.step and 1 <= peagle.step.accepted_length <= 4 and peagle.step.draft_s > 0
    assert other.precision == "bfloat16" and other.tokens_per_second.median > 0


def test_a_program_that_is_not_installed_is_named(tmp_path: Path) -> None:
    (tmp_path / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')  # -S: without site-packages
    (tmp_path / "python").chmod(0o755)
    lane = Lane(Order("llama.cpp", "", 1, 512, gguf=""))
    assert start(lane, [tmp_path / "python"]) is None


def test_a_program_that_is_killed_is_said_to_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEAGLE_LOG_DIR", str(tmp_path))
    (tmp_path / "python").write_text("#!/bin/sh\nkill -ILL $$\n")
    (tmp_path / "python").chmod(0o755)
    lane = Lane(Order("llama.cpp", "", 1, 512, gguf=""))
    with pytest.raises(PeagleError, match="killed by SIGILL"):
        start(lane, [tmp_path / "python"])


def test_steps_are_measured_by_context(tiny_engine: TorchEngine) -> None:
    contexts = list(steps.by_context(tiny_engine, ("eagle3", 2), unheard))
    lengths = [at.tokens for at in contexts]
    assert [round(length, -2) for length in lengths] == [100, 1000, 4000]  # the model has no room for the longest
    assert all(min(at.prefill_s, at.plain_s, at.draft_s, at.verify_s) > 0 for at in contexts)


def test_a_chats_last_turn_processes_only_what_is_new(tiny_engine: TorchEngine) -> None:
    first, last = steps.of_a_chat(tiny_engine, ("peagle", 3), unheard)
    assert (first.number, first.processed) == (1, first.context)
    assert last.number == steps.TURNS
    assert last.processed < last.context


def test_the_report_is_told_as_tables(tiny_engine: TorchEngine) -> None:
    info = tiny_engine.info
    speed = Speed("peagle", "1.0", "float32", "peagle", 3, Spread.of([10, 20, 30]), Spread.of([1.5]))
    report = Report("", "Tiny", info.machine, {}, 3, 32, (speed,), ("vLLM",), candidates=Spread.of([0.98]))
    text = "\n".join(lines(report))
    assert "| peagle 1.0, float32: P-EAGLE 3 | 20.0 (15.0–25.0) | 1.50 (1.50–1.50)" in text
    assert "Not installed: vLLM." in text
    assert "0.980" in text
    assert msgspec.json.decode(msgspec.json.encode(report), type=Report) == report
