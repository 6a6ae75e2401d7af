"""`peagle chat` between pipes: what comes out where, and with which exit code."""

import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import msgspec
import pytest

from peagle_cli.cli.plain import Reply
from peagle_cli.engine.protocol import EngineSpec
from peagle_cli.models.presets import DEFAULT
from peagle_cli.text import printable
from peagle_cli.trace.events import DraftBatch, Event, Finished, Started, decode
from tests.cli.program import Program, engine_of, eventually, is_alive

PROMPT = "Write a Python function that merges two sorted lists."
STEADY_FIGURES = (
    "tokens",
    "steps",
    "drafts",
    "draft_tokens",
    "accepted_tokens",
    "mean_acceptance_length",
    "draft_acceptance_rate",
    "per_position_acceptance",
    "acceptance_histogram",
)


def events_of(stdout: str) -> list[Event]:
    return [decode(line) for line in stdout.splitlines()]


def test_text_json_and_events_agree(program: Program, tiny_options: list[str]) -> None:
    chat = ("chat", "Hello", *tiny_options, "--max-tokens", "60", "--depth", "5")
    text, whole, lines = (program.run(*chat, "--output", output) for output in ("text", "json", "jsonl"))
    assert [text.returncode, whole.returncode, lines.returncode] == [0, 0, 0]

    reply = Reply()
    for event in events_of(lines.stdout):
        reply.add(event)
    told, recomputed = json.loads(whole.stdout), json.loads(msgspec.json.encode(reply.report()))
    for report in (told, recomputed):
        report["metrics"] = {name: report["metrics"][name] for name in STEADY_FIGURES}
    assert told == recomputed
    assert told["metrics"]["tokens"] == 60
    assert text.stdout.removesuffix("\n") == printable(told["text"]).removesuffix("\n")


def test_json_says_what_ran(program: Program, tiny_options: list[str], tiny_spec: EngineSpec) -> None:
    done = program.run("chat", "Hello", *tiny_options, "--max-tokens", "8", "--output", "json")
    report: dict[str, Any] = json.loads(done.stdout)
    assert {name: report[name] for name in ("engine", "drafter", "method", "depth", "device", "dtype", "weights")} == {
        "engine": "torch",
        "drafter": Path(tiny_spec.drafters[0]).name,
        "method": "peagle",
        "depth": 7,
        "device": "cpu",
        "dtype": "float32",
        "weights": "float32",
    }
    assert report["finish_reason"] == "length"
    assert report["prompt_tokens"] > 0
    assert report["metrics"]["time_to_first_token_s"] > 0
    assert report["metrics"]["tokens_per_second"] > 0
    assert report["versions"]["peagle"]
    assert done.stderr == ""


def test_only_text_on_standard_output_and_no_control_sequence_anywhere(
    program: Program, tiny_options: list[str]
) -> None:
    """The tiny model talks noise; all that is noise in a terminal's eyes is gone."""
    done = program.run("chat", "Hello", *tiny_options, "--temperature", "3", "--seed", "1", "--max-tokens", "300")
    assert done.returncode == 0
    for stream in (done.stdout, done.stderr):
        assert printable(stream) == stream
    assert done.stderr.count("\n") == 1, "one line of figures"
    assert "tok/s" in done.stderr
    assert "effective depth" in done.stderr
    assert done.stdout.endswith("\n")


@pytest.mark.parametrize(
    ("argument", "stdin", "asked"),
    [(["Hello"], b"", "Hello"), ([], b"Hello\n", "Hello"), (["Sum up:"], b"a\nb\n", "Sum up:\n\na\nb")],
)
def test_prompt_is_argument_and_standard_input(
    program: Program, tiny_options: list[str], argument: list[str], stdin: bytes, asked: str
) -> None:
    done = program.run("chat", *argument, *tiny_options, "--max-tokens", "2", "--output", "jsonl", stdin=stdin)
    started = events_of(done.stdout)[0]
    assert isinstance(started, Started)
    assert started.prompt == asked


def test_options_override_variables_override_settings(program: Program, tiny_options: list[str]) -> None:
    program.config.parent.mkdir()
    program.config.write_text('method = "eagle3"\ndepth = 1\nmax_tokens = 1\n')
    done = program.run(
        *("chat", "Hello", *tiny_options, "--output", "json", "--max-tokens", "3"),
        environment={"PEAGLE_DEPTH": "2", "PEAGLE_MAX_TOKENS": "2"},
    )
    report = json.loads(done.stdout)
    assert (report["method"], report["depth"], report["max_tokens"]) == ("eagle3", 2, 3)


def test_candidates_come_with_the_events(program: Program, tiny_options: list[str]) -> None:
    done = program.run("chat", "Hello", *tiny_options, "--max-tokens", "9", "--output", "jsonl", "--candidates", "4")
    batch = next(event for event in events_of(done.stdout) if isinstance(event, DraftBatch) and event.drafted)
    assert {len(token.alternatives) for token in batch.drafted} == {4}
    assert {len(view.candidates) for view in batch.target} == {4}


class TestBadInput:
    """One sentence on what is wrong, one on what to do, and exit code 2."""

    @pytest.mark.parametrize(
        ("arguments", "complaint"),
        [
            (["Hello", "--depth", "99"], "99"),
            (["Hello", "--top-p", "0"], "top-p"),
            (["Hello", "--temperature", "inf"], "temperature"),
            ([""], "prompt"),
            (["  "], "prompt"),
            (["\udcff"], "UTF-8"),
            (["word " * 5000], "tokens"),
            (["Hello", "--device", "abacus"], "abacus"),
        ],
    )
    def test_values(self, program: Program, tiny_options: list[str], arguments: list[str], complaint: str) -> None:
        self.check(program, ["chat", *tiny_options, *arguments], complaint)

    def test_unknown_model(self, program: Program) -> None:
        self.check(program, ["chat", "Hello", "--model", "nonsense"], "nonsense")

    def test_drafter_of_another_model(self, program: Program, tiny_spec: EngineSpec) -> None:
        assert tiny_spec.model
        drafter = str(DEFAULT.drafters[0])
        self.check(program, ["chat", "Hello", "--model", tiny_spec.model, "--drafter", drafter], drafter)

    def test_method_without_a_drafter(self, program: Program, tiny_spec: EngineSpec) -> None:
        assert tiny_spec.model
        self.check(program, ["chat", "Hello", "--model", tiny_spec.model, "--method", "peagle"], "P-EAGLE")

    def test_truncated_weights(self, program: Program, tiny_spec: EngineSpec, tmp_path: Path) -> None:
        assert tiny_spec.model
        folder = shutil.copytree(tiny_spec.model, tmp_path / "truncated")
        os.truncate(folder / "model.safetensors", 100_000)
        self.check(program, ["chat", "Hello", "--model", str(folder)], "model.safetensors")

    def check(self, program: Program, arguments: list[str], complaint: str) -> None:
        done = program.run(*arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert complaint in done.stderr
        assert "Traceback" not in done.stderr
        assert done.stderr.count("\n") <= 2


class TestEnds:
    """Whatever ends first, the other side ends too, and what had been said stands."""

    @pytest.fixture
    def endless(self, tiny_options: list[str]) -> list[str]:
        """A reply that lasts far longer than any of these tests."""
        return ["chat", "Hello", *tiny_options, "--max-tokens", "4000", "--depth", "1"]

    def test_killed_engine(self, program: Program, endless: list[str]) -> None:
        with program.started(*endless) as peagle:
            assert peagle.stdout and peagle.stderr
            begun = peagle.stdout.read(20)
            os.kill(engine_of(peagle.pid), signal.SIGKILL)
            rest, told = peagle.stdout.read(), peagle.stderr.read().decode()
            assert peagle.wait() == 1
        assert len(begun) == 20 and rest.endswith(b"\n")
        assert "Error: The engine process was killed" in told
        assert str(program.places / "logs") in told
        assert "tok/s" in told, "the figures of what there was"

    def test_killed_engine_in_json(self, program: Program, endless: list[str]) -> None:
        with program.started(*endless, "--output", "jsonl") as peagle:
            assert peagle.stdout
            begun = [peagle.stdout.readline() for _ in range(5)]
            os.kill(engine_of(peagle.pid), signal.SIGKILL)
            rest = peagle.stdout.readlines()
            assert peagle.wait() == 1
        events = events_of(b"".join(begun + rest).decode())
        assert not any(isinstance(event, Finished) for event in events)
        assert json.loads(rest[-1])["type"] == "Failed"

    @pytest.mark.parametrize("stage", ["loading", "reply"])
    def test_interrupted(self, program: Program, endless: list[str], stage: str) -> None:
        with program.started(*endless) as peagle:
            assert peagle.stdout and peagle.stderr
            engine = engine_of(peagle.pid)
            if stage == "reply":
                peagle.stdout.read(1)
            peagle.send_signal(signal.SIGINT)
            assert peagle.wait() == 130
            assert b"Traceback" not in peagle.stderr.read()
        eventually(lambda: not is_alive(engine))

    @pytest.mark.parametrize("stage", ["loading", "reply"])
    def test_killed_peagle_leaves_no_orphan(self, program: Program, endless: list[str], stage: str) -> None:
        with program.started(*endless) as peagle:
            assert peagle.stdout
            engine = engine_of(peagle.pid)
            if stage == "reply":
                peagle.stdout.read(1)
            peagle.kill()
        eventually(lambda: not is_alive(engine))

    def test_reader_that_has_had_enough(self, program: Program, endless: list[str]) -> None:
        with program.started(*endless, "--output", "jsonl") as peagle:
            assert peagle.stdout and peagle.stderr
            peagle.stdout.readline()
            engine = engine_of(peagle.pid)
            peagle.stdout.close()
            assert peagle.stderr.read() == b""
            assert peagle.wait() == 1
        eventually(lambda: not is_alive(engine))

    def test_broken_installation(self, program: Program, endless: list[str], tmp_path: Path) -> None:
        (tmp_path / "torch.py").write_text("raise ImportError('libgomp.so.1: cannot open shared object file')\n")
        done = program.run(*endless, environment={"PYTHONPATH": str(tmp_path)})
        assert (done.returncode, done.stdout) == (1, "")
        assert "libgomp.so.1" in done.stderr
        assert str(program.places / "logs") in done.stderr

    def test_modules_in_the_working_folder_are_not_imported(
        self, program: Program, tiny_options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "torch.py").write_text("raise RuntimeError('imported from the working folder')\n")
        monkeypatch.chdir(tmp_path)
        assert program.run("chat", "Hello", *tiny_options, "--max-tokens", "2").returncode == 0


def test_drafting_does_not_change_the_text(program: Program) -> None:
    """In float32 at temperature 0, the text is that of plain decoding."""

    def text(*options: str) -> str:
        chat = ("chat", PROMPT, "--device", "cpu", "--dtype", "float32", "--max-tokens", "40", "--output", "jsonl")
        events = events_of(program.run(*chat, *options).stdout)
        assert any(isinstance(event, DraftBatch) and event.drafted for event in events) == ("none" not in options)
        return "".join(event.text for event in events if isinstance(event, DraftBatch))

    plain = text("--method", "none")
    assert "def " in plain
    for method, depth in (("eagle3", 3), ("peagle", 1), ("peagle", 3), ("peagle", 7)):
        assert text("--method", method, "--depth", str(depth)) == plain, f"{method} at depth {depth}"


@pytest.mark.parametrize(
    ("options", "complaint"), [(("--theme", "mauve"), "mauve"), (("--candidates", "3"), "--candidates")]
)
def test_options_without_effect_are_not_ignored(program: Program, options: tuple[str, ...], complaint: str) -> None:
    done = program.run("chat", "Hello", *options)
    assert done.returncode == 2
    assert complaint in done.stderr
