"""What tests of several parts need: the real small model, fetched once into the ordinary cache, and a tiny one."""

from pathlib import Path

import pytest

from peagle_cli.engine.protocol import EngineSpec
from peagle_cli.models import store
from tests import tiny


@pytest.fixture(scope="session")
def default_target() -> Path:
    """The default target's folder."""
    return store.target_folder()


@pytest.fixture(scope="session")
def tiny_spec(tmp_path_factory: pytest.TempPathFactory, default_target: Path) -> EngineSpec:
    """A random model and its two random drafters, in float32."""
    folder = tmp_path_factory.mktemp("tiny")
    return EngineSpec(
        model=str(tiny.write_target(folder / "target", tokenizer=default_target)),
        drafters=(
            str(tiny.write_drafter(folder / "peagle", "peagle")),
            str(tiny.write_drafter(folder / "eagle3", "eagle3")),
        ),
        device="cpu",
        dtype="float32",
    )
