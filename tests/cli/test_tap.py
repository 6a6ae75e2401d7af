"""`peagle tap`: what to add to a server of one's own, and how an attached chat meets one that is none of vLLM's."""

import shlex
from pathlib import Path

from tests.cli.program import Program
from tests.engine.vllm.servers import serving


def test_prints_what_to_add_to_a_server(program: Program, tmp_path: Path) -> None:
    done = program.run("tap", "--port", "8123", environment={"PEAGLE_CACHE_DIR": str(tmp_path), "XDG_RUNTIME_DIR": ""})
    words = shlex.split(done.stdout)
    assert f"PEAGLE_TAP=ipc://{tmp_path / 'tap-8123'}" in words
    path = next(word for word in words if word.startswith("PYTHONPATH=")).partition("=")[2]
    assert sorted(entry.name for entry in Path(path).iterdir()) == ["peagle_cli"], "and nothing that is installed here"
    assert words[words.index("--scheduler-cls") + 1] == "peagle_cli.engine.vllm.tap.TapScheduler"
    assert "--engine http://localhost:8123" in done.stderr


def test_an_address_for_others_is_warned_of(program: Program) -> None:
    done = program.run("tap", "--listen", "tcp://0.0.0.0:9000")
    assert "PEAGLE_TAP=tcp://0.0.0.0:9000" in done.stdout
    assert "PEAGLE_TAP=tcp://HOST:9000" in done.stderr
    assert "Whoever reaches that address" in done.stderr


def test_a_chat_on_another_server_says_what_is_missing(program: Program) -> None:
    with serving() as (url, _):
        done = program.run("chat", "Count.", "--engine", url)
    assert (done.returncode, done.stdout) == (0, "One two three\n")
    assert "This server is not vLLM" in done.stderr


def test_flags_behind_the_dashes_are_the_servers_and_a_prompt_elsewhere(program: Program) -> None:
    refused = program.run("chat", "Count.", "--engine", "vllm", "--", "--model", "x")
    assert refused.returncode == 2
    assert "gives vLLM --model itself" in refused.stderr
    assert program.run("chat", "--device", "nowhere", "--", "--prompt").returncode == 2
