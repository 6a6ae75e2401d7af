"""The program and the tiny model, for tests of the whole."""

from pathlib import Path

import pytest

from tests.cli.program import Program


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """`peagle`, without settings."""
    return Program(tmp_path)
