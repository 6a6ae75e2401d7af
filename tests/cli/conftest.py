"""The program and the tiny model, for tests of the whole."""

from pathlib import Path

import pytest

from peagle_cli.engine.protocol import EngineSpec
from tests.cli.program import Program


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """`peagle`, without settings."""
    return Program(tmp_path)


@pytest.fixture(scope="session")
def tiny_options(tiny_spec: EngineSpec) -> list[str]:
    """The options that choose the tiny model."""
    assert tiny_spec.model and tiny_spec.device and tiny_spec.dtype
    drafters = [word for drafter in tiny_spec.drafters for word in ("--drafter", drafter)]
    return ["--model", tiny_spec.model, *drafters, "--device", tiny_spec.device, "--dtype", tiny_spec.dtype]


@pytest.fixture
def gpu_machine(tmp_path: Path) -> Path:
    """A folder for PATH whose nvidia-smi tells of a GPU with 8 GiB, as that program would."""
    smi = tmp_path / "bin" / "nvidia-smi"
    smi.parent.mkdir()
    smi.write_text("#!/bin/sh\necho '0, GPU-1234, Tiny GPU, 8192'\n")
    smi.chmod(0o755)
    return smi.parent
