"""What is measured adds up, other programs answer the same prompts, those that break are left out, and the report says
what was found."""

import sys
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from peagle_cli.bench import steps
from peagle_cli.bench.peers import Lane, Order, Peer, start
from peagle_cli.bench.report import Absent, Report, Speed, Spread
from peagle_cli.bench.speed import SpeedTest, started
from peagle_cli.cli.bench_report import render
from peagle_cli.engine.protocol import EngineSpec, Request
from peagle_cli.engine.torch.engine import TorchEngine
from peagle_cli.errors import PeagleError
from peagle_cli.models.progress import unheard
from peagle_cli.trace.events import Event, Started
from peagle_cli.trace.rounds import PLAIN
from tests.tui.driving import Lent

PYTHONS = [Path(sys.executable)]

BROKEN_LLAMA_CPP = """
import os, signal, time

BEHAVIOUR = {behaviour!r}
if BEHAVIOUR == "import":
    raise ImportError("libllama.so: undefined symbol")

class Llama:
    metadata = {{}}

    def __init__(self, **parameters):
        if BEHAVIOUR == "load slowly":
            time.sleep(60)

    def reset(self):
        pass

    def token_eos(self):
        return 2

    def generate(self, ids, temp):
        if BEHAVIOUR == "die":
            os.kill(os.getpid(), signal.SIGILL)
        if BEHAVIOUR == "hang":
            time.sleep(60)
        while BEHAVIOUR != "silence":
            yield 7 if BEHAVIOUR == "nonsense" else "no token"
"""


@pytest.fixture
def transformers_lane(tiny_spec: EngineSpec) -> Lane:
    return Lane(Order("transformers", str(tiny_spec.model), threads=1, context=512))


LLAMA_CPP_LANE = Lane(Order("llama.cpp", "", 1, 512, gguf=""))


def python_with_llama_cpp(folder: Path, behaviour: str) -> Path:
    """A Python that has a llama_cpp which breaks in that way."""
    (folder / "llama_cpp.py").write_text(BROKEN_LLAMA_CPP.format(behaviour=behaviour))
    metadata = folder / "llama_cpp_python-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: llama-cpp-python\nVersion: 1.0\n")
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{folder}" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    return python


@pytest.fixture
def own_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEAGLE_LOG_DIR", str(tmp_path / "logs"))


def test_ours_and_others_are_measured_prompt_by_prompt(tiny_engine: TorchEngine, transformers_lane: Lane) -> None:
    with started([transformers_lane], PYTHONS, unheard) as (peers, absent):
        test = SpeedTest(tiny_engine, [PLAIN, ("peagle", 3)], peers, ["One.", "Two."], 32, unheard)
        (plain, peagle, other), broken = test.measure()
    assert not absent
    assert not broken
    assert (plain.program, peagle.method, peagle.depth, other.program) == ("peagle", "peagle", 3, "transformers")
    assert plain.over_plain == Spread(1, 1, 1)
    assert plain.same_tokens == peagle.same_tokens == 32
    assert plain.step and plain.step.accepted_length == 1 and plain.step.draft_s < plain.step.verify_s
    assert peagle.step and 1 <= peagle.step.accepted_length <= 4 and peagle.step.draft_s > 0
    assert other.precision == "bfloat16" and other.tokens_per_second.median > 0


def test_no_reply_finds_the_cache_of_another(tiny_engine: TorchEngine) -> None:
    heard: list[Started] = []

    class Overheard(Lent):
        """Keeps how replies started."""

        def run(self, request: Request) -> Generator[Event]:
            for event in super().run(request):
                if isinstance(event, Started):
                    heard.append(event)
                yield event

    SpeedTest(Overheard(tiny_engine), [PLAIN, ("peagle", 2)], [], ["One.", "Two."], 4, unheard).measure()
    assert len(heard) == 2 * (1 + 2), "a warm-up and two prompts each"
    assert not any(started.reused for started in heard)


def test_a_program_that_is_not_installed_is_named(tmp_path: Path) -> None:
    (tmp_path / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')  # -S: without site-packages
    (tmp_path / "python").chmod(0o755)
    with started([LLAMA_CPP_LANE], [tmp_path / "python"], unheard) as (peers, absent):
        assert not peers
        assert absent == [Absent("llama.cpp", "none", 0, "not installed")]


@pytest.mark.usefixtures("own_logs")
def test_a_program_that_fails_to_load_is_left_out(tmp_path: Path) -> None:
    python = python_with_llama_cpp(tmp_path, "import")
    with started([LLAMA_CPP_LANE], [python], unheard) as (peers, absent):
        assert not peers
    assert [each.program for each in absent] == ["llama.cpp"]
    assert absent[0].reason.endswith("exit code 1: ImportError: libllama.so: undefined symbol")


@pytest.mark.usefixtures("own_logs")
def test_a_program_that_does_not_finish_loading_is_given_up(tmp_path: Path) -> None:
    with pytest.raises(PeagleError, match="no answer within"):
        start(LLAMA_CPP_LANE, [python_with_llama_cpp(tmp_path, "load slowly")], limit_s=0.5)


@pytest.mark.usefixtures("own_logs")
@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        ("die", "was killed by SIGILL"),
        ("silence", "replied with 0 tokens"),
        ("nonsense", "begins every reply otherwise"),
        ("no token", "said what is no answer"),
    ],
)
def test_a_program_that_breaks_is_left_out_and_the_others_go_on(
    tmp_path: Path, tiny_engine: TorchEngine, behaviour: str, reason: str
) -> None:
    prompts = ["One.", "Two.", "Three."]
    with closing(started_peer(tmp_path, behaviour)) as peer:
        (plain,), (broken,) = SpeedTest(tiny_engine, [PLAIN], [peer], prompts, 32, unheard).measure()
    assert plain.program == "peagle" and plain.same_tokens == 32
    assert broken.name == "llama.cpp plain"
    assert reason in broken.reason


@pytest.mark.usefixtures("own_logs")
def test_a_program_that_hangs_is_given_up(tmp_path: Path) -> None:
    with closing(started_peer(tmp_path, "hang")) as peer, pytest.raises(PeagleError, match="no answer within"):
        peer.reply([1], 4, limit_s=0.5)


def started_peer(folder: Path, behaviour: str) -> Peer:
    peer = start(LLAMA_CPP_LANE, [python_with_llama_cpp(folder, behaviour)])
    assert peer
    return peer


def test_the_parts_of_a_step_are_measured(tiny_spec: EngineSpec) -> None:
    found = steps.inside(tiny_spec, [PLAIN, ("eagle3", 2)], unheard)
    assert [each.width for each in found.passes if each.context == 128] == list(range(1, 12))
    assert {each.context for each in found.passes} == {128, 1000, 4000}  # the model has no room for the longest
    assert [each.tokens for each in found.prefills] == [128, 1000]
    plain, eagle3 = found.budgets
    assert plain.draft == plain.draft_matrices == 0
    assert min(eagle3.draft, eagle3.draft_matrices) > 0
    assert min(eagle3.matrices, eagle3.attention, eagle3.head, eagle3.sampling, eagle3.event) > 0


def test_a_chats_last_turn_processes_only_what_is_new(tiny_engine: TorchEngine) -> None:
    first, last = steps.of_a_chat(tiny_engine, ("peagle", 3), unheard)
    assert (first.number, first.processed) == (1, first.context)
    assert last.number == steps.TURNS
    assert last.processed < last.context


def test_the_report_is_told_as_tables(tiny_engine: TorchEngine) -> None:
    info = tiny_engine.info
    speed = Speed("peagle", "peagle", 3, "1.0", "float32", Spread.of([10, 20, 30]), Spread.of([1.5]), 32)
    absent = Absent("vLLM", "none", 0, "was killed by SIGILL.")
    report = Report("", "Tiny", info.machine, {}, 3, 32, (speed,), (absent,), candidates=Spread.of([0.98]))
    page = render(report, "markdown")
    assert "| peagle P-EAGLE 3 | 1.0 | float32 | 20.0 (15.0–25.0) | 1.50 (1.50–1.50) | 32 |" in page
    assert "| vLLM plain | was killed by SIGILL. |" in page
    assert "0.980" in page
    assert msgspec.json.decode(render(report, "json"), type=Report) == report
