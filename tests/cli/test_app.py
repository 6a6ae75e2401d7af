"""The command line as a whole: quick to answer, and every mistake is a sentence and an exit code."""

import subprocess
import sys

import pytest

from peagle_cli import __version__
from tests.cli.program import PEAGLE, Program

HEAVY = ("torch", "textual", "huggingface_hub", "transformers", "numpy", "tokenizers", "rich")


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["chat", "--help"]])
def test_asking_for_help_loads_nothing_heavy(program: Program, arguments: list[str]) -> None:
    script = (
        "import sys\n"
        "from peagle_cli.__main__ import main\n"
        f"sys.argv[1:] = {arguments}\n"
        "try:\n    main()\n"
        f"finally:\n    sys.stderr.write(' '.join(m for m in {HEAVY} if m in sys.modules))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=program.environment, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


def test_version(program: Program) -> None:
    assert program.run("--version").stdout == f"peagle {__version__}\n"


def test_a_bare_call_shows_the_commands(program: Program) -> None:
    done = program.run()
    assert "chat" in done.stdout + done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["prattle"],
        ["chat", "hi", "--method", "medusa"],
        ["chat", "hi", "--depth", "-1"],
        ["chat", "hi", "--temperature", "-1"],
        ["chat", "hi", "--temperature", "nan"],
        ["chat", "hi", "--max-tokens", "0"],
        ["chat", "hi", "there"],
    ],
)
def test_wrong_usage_exits_with_2(program: Program, arguments: list[str]) -> None:
    done = program.run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert arguments[-1] in done.stderr or arguments[-2] in done.stderr


def test_settings_that_cannot_be_used_are_one_sentence(program: Program) -> None:
    program.config.parent.mkdir()
    program.config.write_text("dept = 3\n")
    done = program.run("chat", "hi")
    assert (done.returncode, done.stdout) == (2, "")
    assert "dept" in done.stderr
    assert "Traceback" not in done.stderr
    assert program.run("--help").returncode == 0


@pytest.mark.parametrize("arguments", [["--debug", "chat", "hi"], ["chat", "hi", "--debug"]])
def test_debug_shows_where_an_error_came_from(program: Program, arguments: list[str]) -> None:
    done = program.run(*arguments, environment={"PEAGLE_LOG_DIR": "/dev/null/logs"})
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "Traceback" not in program.run("chat", "hi", environment={"PEAGLE_LOG_DIR": "/dev/null/logs"}).stderr


def test_debug_behind_two_dashes_is_a_prompt(program: Program) -> None:
    done = program.run("chat", "--", "--debug", environment={"PEAGLE_LOG_DIR": "/dev/null/logs"})
    assert done.returncode == 1
    assert "Traceback" not in done.stderr


def test_completes_commands_and_options(program: Program) -> None:
    asked = {"_PEAGLE_COMPLETE": "complete_bash", "COMP_WORDS": "peagle chat --met", "COMP_CWORD": "2"}
    assert "--method" in program.run(environment=asked).stdout.split()


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_that_are_closed_do_no_harm(program: Program, tiny_options: list[str], closed: str) -> None:
    chat = [PEAGLE, "chat", "Hello", *tiny_options, "--max-tokens", "4"]
    done = subprocess.run(
        ["sh", "-c", f'"$@" {closed}', "sh", *chat],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=program.environment,
        check=False,
    )
    assert done.returncode == 0
    assert bool(done.stdout) == (">&-" not in closed.split())


def test_a_character_that_the_locale_lacks_becomes_a_question_mark(program: Program) -> None:
    done = program.run("locate", environment={"PYTHONIOENCODING": "latin-1", "PEAGLE_DATA_DIR": "/φ"})
    assert (done.returncode, done.stderr) == (0, "")
    assert "/?" in done.stdout


def test_a_full_disk_is_one_sentence(program: Program) -> None:
    command = ["sh", "-c", '"$@" > /dev/full', "sh", PEAGLE, "locate"]
    done = subprocess.run(command, stderr=subprocess.PIPE, env=program.environment, check=False)
    assert done.returncode == 1
    assert done.stderr.decode().startswith("Error: There is no space left")
