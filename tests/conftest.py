"""What tests of several parts need: the real small model, fetched once into the ordinary cache."""

from pathlib import Path

import pytest

from peagle_cli.models import store


@pytest.fixture(scope="session")
def default_target() -> Path:
    """The default target's folder."""
    return store.target_folder()
