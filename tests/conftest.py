"""What tests of several parts need: the real small model, fetched once into the ordinary cache, and a tiny one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from peagle_cli.engine.protocol import EngineSpec
from peagle_cli.engine.torch.engine import TorchEngine
from peagle_cli.models import store
from peagle_cli.tui.screens import tour
from tests import recordings, tiny


@pytest.fixture(scope="session", autouse=True)
def own_data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What tests record does not go to the user's sessions."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PEAGLE_DATA_DIR", str(tmp_path_factory.mktemp("data")))
        tour.remember()  # it opens by itself only once
        yield


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


@pytest.fixture(scope="session")
def tiny_engine(tiny_spec: EngineSpec) -> TorchEngine:
    """The random model and its drafters, opened in this process."""
    return TorchEngine.open(tiny_spec)


@pytest.fixture(scope="session")
def recorded(tiny_engine: TorchEngine, tmp_path_factory: pytest.TempPathFactory) -> recordings.Recorded:
    """A recording of two requests, and what was told while it was made."""
    return recordings.record(tiny_engine, tmp_path_factory.mktemp("data"))
