"""A program that is talked to line by line, and what is said of it when it ends."""

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from peagle_cli.engine.program import Program
from peagle_cli.errors import PeagleError


@pytest.fixture
def stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ExitStack]:
    monkeypatch.setenv("PEAGLE_LOG_DIR", str(tmp_path))
    with ExitStack() as stack:
        yield stack


def started(stack: ExitStack, code: str) -> Program:
    return stack.enter_context(closing(Program("The program", [sys.executable, "-c", code], os.environ)))


def test_answers_line_by_line_until_its_input_ends(stack: ExitStack) -> None:
    echo = started(stack, "import sys\nfor line in sys.stdin: print(line, end='', flush=True)")
    echo.say([1, "two"])
    assert echo.hear() == b'[1,"two"]\n'
    echo.close()
    with pytest.raises(PeagleError, match="ended with exit code 0"):
        echo.hear()


@pytest.mark.parametrize(
    ("ends", "told"),
    [
        ("sys.exit('no such model')", "ended with exit code 1: no such model"),
        ("os.kill(os.getpid(), signal.SIGILL)", "was killed by SIGILL"),
    ],
)
def test_one_that_dies_in_the_midst_of_a_line_has_said_nothing(stack: ExitStack, ends: str, told: str) -> None:
    code = f"import os, signal, sys\nprint('[1, 2', end='', flush=True)\n{ends}"
    with pytest.raises(PeagleError, match=told):
        started(stack, code).hear()
