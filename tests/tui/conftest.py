"""The engine of the screens' tests."""

import pytest

from peagle_cli.engine.torch.engine import TorchEngine
from peagle_cli.tui import session
from tests.tui.driving import Ready


@pytest.fixture
def ready(tiny_engine: TorchEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chats have the random model at once."""
    monkeypatch.setattr(session, "start_engine", lambda spec: Ready(tiny_engine))
