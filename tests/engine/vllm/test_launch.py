"""What a server is given to start, and what is said when it does not: here a stand-in that fails as vLLM would."""

import json
import socket
from pathlib import Path

import pytest

from peagle_cli.engine.open import open_engine
from peagle_cli.engine.protocol import EngineSpec
from peagle_cli.engine.vllm.installation import Installation, find
from peagle_cli.engine.vllm.launch import Launch, Plan, command, environment, free_port
from peagle_cli.engine.vllm.preflight import Drafter, check_flags, inspect_drafter
from peagle_cli.errors import BadInputError, PeagleError
from peagle_cli.models.progress import Progress, unheard
from tests import tiny

PEAGLE = Drafter("peagle", Path("/drafter"), 4096)
CPU = Installation(Path("/python"), Path("/prefix"), "0.32.0", cpu=True)
GPU = Installation(Path("/python"), Path("/prefix"), "0.32.0", cpu=False)


@pytest.fixture
def target(tmp_path: Path, default_target: Path) -> Path:
    return tiny.write_target(tmp_path / "target", tokenizer=default_target)


def plan(target: Path, drafter: Drafter | None = PEAGLE, **more: object) -> Plan:
    return Plan("model", "P-EAGLE", target, drafter, 7, **more)  # type: ignore[arg-type]


def value(arguments: list[str], flag: str) -> str:
    return arguments[arguments.index(flag) + 1]


def test_the_tap_and_the_drafter_are_named(target: Path) -> None:
    arguments = command(plan(target), GPU, 1234)
    assert value(arguments, "--host") == "127.0.0.1"
    assert value(arguments, "--port") == "1234"
    assert value(arguments, "--scheduler-cls").endswith("tap.TapScheduler")
    assert "--no-async-scheduling" in arguments
    assert json.loads(value(arguments, "--speculative-config")) == {
        "method": "eagle3",
        "model": "/drafter",
        "num_speculative_tokens": 7,
        "parallel_drafting": True,
    }
    assert environment(GPU, Path("/folder"))["VLLM_USE_V2_MODEL_RUNNER"] == "0"


def test_on_a_cpu_the_depth_is_given_by_batch_size(target: Path) -> None:
    arguments = command(plan(target, flags=("--max-num-seqs", "8")), CPU, 1234)
    speculation = json.loads(value(arguments, "--speculative-config"))
    assert speculation["num_speculative_tokens_per_batch_size"] == [[1, 8, 7]]


def test_no_drafter_no_speculation(target: Path) -> None:
    assert "--speculative-config" not in command(plan(target, None), GPU, 1234)


def test_asynchronous_scheduling_has_its_own_tap(target: Path) -> None:
    arguments = command(plan(target, flags=("--async-scheduling",)), GPU, 1234)
    assert value(arguments, "--scheduler-cls").endswith("AsyncTapScheduler")
    assert "--no-async-scheduling" not in arguments


def test_the_context_ends_where_the_drafters_does(target: Path) -> None:
    short = Drafter("peagle", Path("/drafter"), 512)
    assert value(command(plan(target, short), GPU, 1), "--max-model-len") == "512"
    assert value(command(plan(target, short, flags=("--max-model-len", "300")), GPU, 1), "--max-model-len") == "300"


@pytest.mark.parametrize(
    ("printed", "told"),
    [
        ("api_server.py: error: unrecognized arguments: --nonsense", "does not know --nonsense"),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB", "too little memory"),
        ("ERROR vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.", "engine process ended"),
        ("ValueError: No available memory for the cache blocks. Try increasing", "No memory is left"),
        (
            "ValueError: Available memory on node 0 (0.8/23.6 GiB) on kv cache allocation is less than requested",
            "cache",
        ),
        ("OSError: [Errno 98] address already in use", "port is in use"),
        ("AssertionError: Attempted to load weight (torch.Size([8])) into", "weights have other sizes"),
        ("TapError: peagle's tap was made for vLLM 0.32, and this is 0.40", "made for vLLM 0.32, and this is 0.40"),
        ("ModuleNotFoundError: No module named 'vllm'", "cannot import vllm"),
        ("ValueError: Something else is wrong\x1b[31m", "Something else is wrong"),
        ("(nothing that is known)", "ended with exit code 3"),
    ],
)
def test_a_server_that_does_not_start_says_why(
    printed: str, told: str, target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PEAGLE_LOG_DIR", str(tmp_path / "logs"))
    python = tmp_path / "python"
    (tmp_path / "printed").write_text(f"(EngineCore pid=1) {printed}\n")
    python.write_text(f"#!/bin/sh\ncat '{tmp_path / 'printed'}'\nexit 3\n")
    python.chmod(0o755)
    launch = Launch(plan(target), Installation(python, tmp_path, "0.32.0", cpu=True))
    said: list[Progress] = []
    try:
        with pytest.raises(PeagleError) as failed:
            launch.wait(said.append)
    finally:
        launch.close()
    assert told in failed.value.message
    assert "\x1b" not in str(failed.value)
    assert str(launch.log) in failed.value.hint
    assert {progress.stage.partition(": ")[0] for progress in said} == {"Starting vLLM (P-EAGLE)"}, "a line, in a log"
    assert not launch.folder.exists()


def test_another_version_of_vllm_is_named_where_it_does_not_start(
    target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PEAGLE_LOG_DIR", str(tmp_path / "logs"))
    launch = Launch(plan(target), Installation(Path("/bin/false"), tmp_path, "0.40.1", cpu=True))
    with pytest.raises(PeagleError) as failed:
        launch.wait(unheard)
    launch.close()
    assert "made for vLLM 0.32, and this is 0.40.1" in failed.value.hint


def test_a_log_folder_that_cannot_be_written(target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("PEAGLE_LOG_DIR", str(tmp_path / "file"))
    with pytest.raises(PeagleError, match="PEAGLE_LOG_DIR"):
        Launch(plan(target), CPU)


@pytest.mark.parametrize("flag", ["--model", "--scheduler-cls=x", "--speculative-config", "--api-key"])
def test_flags_that_are_not_the_users(flag: str) -> None:
    with pytest.raises(BadInputError):
        check_flags(["--max-num-seqs", "4", flag])


def test_a_port_that_cannot_be_had_is_refused_before_anything_starts() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(BadInputError, match="is in use"):
            check_flags(["--port", str(other.getsockname()[1])])
    check_flags([f"--port={free_port()}"])
    with pytest.raises(BadInputError, match="none at all"):
        check_flags(["--port", "eighty"])


def test_a_second_server_gets_another_port(target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEAGLE_LOG_DIR", str(tmp_path / "logs"))
    with socket.socket() as first:
        first.bind(("127.0.0.1", 0))
        first.listen()
        port = first.getsockname()[1]
        launch = Launch(
            plan(target, flags=("--port", str(port))), Installation(Path("/bin/true"), tmp_path, "", cpu=True)
        )
        launch.close()
    assert launch.port != port


def test_without_vllm_it_says_where_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PEAGLE_VLLM_PYTHON", str(tmp_path / "missing"))
    with pytest.raises(BadInputError, match="no Python that can be asked"):
        find()


def test_flags_are_for_vllm_only() -> None:
    with pytest.raises(BadInputError, match="vLLM's server"):
        open_engine(EngineSpec(flags=("--x",)), unheard)


def test_a_drafter_that_fits(target: Path, tmp_path: Path) -> None:
    folder = tiny.write_drafter(tmp_path / "drafter", "peagle")
    assert inspect_drafter(folder, target) == Drafter("peagle", folder, tiny.CONTEXT)


@pytest.mark.parametrize(
    ("of", "changes", "told"),
    [
        ("drafter", {"vocab_size": 100}, "vocabulary of 100 tokens"),
        ("target", {"hidden_size": 48}, "channels of hidden states"),
        ("drafter", {"architectures": ["LlamaForCausalLM"]}, "not an EAGLE-3 or P-EAGLE drafter"),
        ("target", {"layer_types": ["linear_attention", "full_attention"]}, "vLLM issue 35062"),
    ],
)
def test_a_drafter_that_does_not_fit(
    of: str, changes: dict[str, object], told: str, target: Path, tmp_path: Path
) -> None:
    drafter = tiny.write_drafter(tmp_path / "drafter", "eagle3")
    if "layer_types" in changes:
        _change(drafter, {"num_hidden_layers": 2})
    _change({"target": target, "drafter": drafter}[of], changes)
    with pytest.raises(BadInputError, match=told):
        inspect_drafter(drafter, target)


def _change(folder: Path, changes: dict[str, object]) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
