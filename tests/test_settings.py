"""`config.toml`: what it may hold is kept, anything else is one sentence."""

from pathlib import Path

import pytest

from peagle_cli import settings
from peagle_cli.errors import BadInputError


def test_no_file_no_settings(tmp_path: Path) -> None:
    assert settings.read(tmp_path / "config.toml") == {}


def test_keeps_what_is_set(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('method = "eagle3"\ndepth = 3\ntop_p = 0.9\ndrafter = ["a", "b"]\n')
    assert settings.read(file) == {"method": "eagle3", "depth": 3, "top_p": 0.9, "drafter": ("a", "b")}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("dept = 3", "dept"),
        ('depth = "3"', "depth"),
        ("depth = -1", "depth"),
        ("temperature = -0.5", "temperature"),
        ('method = "medusa"', "medusa"),
        ("depth = [", "end of document"),
        ("\xff", "utf-8"),
    ],
)
def test_refuses_the_rest(tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(BadInputError, match=complaint) as caught:
        settings.read(file)
    assert str(file) in caught.value.message
