"""`peagle doctor`: what will run and why."""

import json
import shutil
from pathlib import Path

from peagle_cli.models.presets import DEFAULT
from tests.cli.program import Program


def test_says_what_will_run_and_why(program: Program, default_target: Path) -> None:
    done = program.run("doctor", "--device", "cpu", "--dtype", "float32")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"✓ SmolLM2-135M-Instruct, in {default_target}" in done.stdout
    assert "✓ P-EAGLE, in " in done.stdout
    assert "decoding plain or P-EAGLE or EAGLE-3" in done.stdout
    assert "on cpu (as asked)" in done.stdout
    assert "in float32 (as asked)" in done.stdout


def test_the_same_as_json(program: Program, tmp_path: Path) -> None:
    done = program.run("doctor", "--output", "json", environment={"PEAGLE_CACHE_DIR": str(tmp_path)})
    report = json.loads(done.stdout)
    assert done.returncode == 0, "a model that is still to be fetched is no problem"
    assert report["model"] == {
        "name": DEFAULT.title,
        "folder": None,
        "download": DEFAULT.source.size,
        "problem": None,
    }
    assert [(drafter["method"], drafter["checked"]) for drafter in report["drafters"]] == [
        ("peagle", False),
        ("eagle3", False),
    ]
    assert report["plan"]["threads"] == report["processor"]["usable_cpus"] <= report["processor"]["cpus"]


def test_a_cache_that_cannot_be_written_is_a_problem(program: Program, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = program.run("doctor", environment={"PEAGLE_CACHE_DIR": str(tmp_path / "file" / "cache")})
    assert done.returncode == 1
    assert "✗ The model cannot be stored in " in done.stdout


def test_a_drafter_that_does_not_fit_is_a_problem(program: Program, default_target: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(DEFAULT.drafters[0], broken)
    (broken / "model.safetensors").write_bytes((broken / "model.safetensors").read_bytes()[:1000])
    done = program.run("doctor", "--drafter", str(broken))
    assert done.returncode == 1
    assert "is cut short" in done.stdout
    assert "nothing, until what is marked ✗ is mended" in done.stdout


def test_an_unknown_device_is_bad_input(program: Program) -> None:
    done = program.run("doctor", "--device", "toaster")
    assert done.returncode == 2
    assert "There is no device called 'toaster'." in done.stderr


def test_a_model_for_vllm_says_what_keeps_it_from_running(program: Program, gpu_machine: Path) -> None:
    done = program.run("doctor", environment={"PATH": str(gpu_machine)})
    assert done.returncode == 0, "what vLLM lacks keeps the embedded engine from nothing"
    assert "Tiny GPU, 8.6 GB" in done.stdout
    (line,) = [line for line in done.stdout.splitlines() if "gpt-oss-120b" in line]
    assert "✗" in line
    assert "weights 65.2 GB" in line
    assert "vLLM may take 7.7 GB of Tiny GPU" in line


def test_what_vllm_would_find_as_json(program: Program, gpu_machine: Path) -> None:
    report = json.loads(program.run("doctor", "--output", "json", environment={"PATH": str(gpu_machine)}).stdout)
    assert report["vllm"]["gpus"] == [{"name": "Tiny GPU", "total": 8192 * 2**20}]
    assert {model["name"] for model in report["vllm"]["models"]} >= {"gpt-oss-20b", "gpt-oss-120b", "qwen3-8b"}
