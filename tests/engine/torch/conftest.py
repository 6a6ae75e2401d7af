"""The small random models of `small.py`, and the real one in float32; each loaded once."""

from pathlib import Path

import pytest

from peagle_cli.engine.protocol import EngineSpec
from peagle_cli.engine.torch.drafter import Drafter
from peagle_cli.engine.torch.engine import TorchEngine
from peagle_cli.engine.torch.target import Target
from tests.engine.torch import small


@pytest.fixture(scope="session")
def small_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small.write_target(tmp_path_factory.mktemp("small") / "target")


@pytest.fixture(scope="session")
def small_target(small_folder: Path) -> Target:
    return small.load_target(small_folder)


@pytest.fixture(scope="session")
def small_drafters(small_target: Target, tmp_path_factory: pytest.TempPathFactory) -> list[Drafter]:
    folder = tmp_path_factory.mktemp("drafters")
    return [
        small.load_drafter(small.write_drafter(folder / "eagle3", small_target, "eagle3", layers=1), small_target),
        small.load_drafter(small.write_drafter(folder / "peagle", small_target, "peagle", layers=2), small_target),
    ]


@pytest.fixture(scope="session")
def real_engine() -> TorchEngine:
    """SmolLM2 with its drafters, in float32: rounding never decides there."""
    return TorchEngine.open(EngineSpec(dtype="float32", device="cpu"))
