"""Themes: those that ship can be read by everyone, and a file that is none is told by file and key."""

from pathlib import Path

import pytest

from peagle_cli import themes
from peagle_cli.errors import BadInputError

SHIPPED = sorted(Path(themes.__file__).parent.glob("*.yaml"))
DARK = (Path(themes.__file__).parent / "dark.yaml").read_text()


@pytest.fixture(autouse=True)
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own themes: none yet."""
    monkeypatch.setenv("PEAGLE_CONFIG_DIR", str(tmp_path))
    (tmp_path / "themes").mkdir()
    return tmp_path / "themes"


def test_what_ships() -> None:
    assert list(themes.available()) == ["dark", "high-contrast", "light", "okabe-ito", "terminal"]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_text_is_readable(path: Path) -> None:
    theme = themes.read(path)
    assert theme.too_faint() == []
    if not theme.ansi:
        colours = theme.colours()
        texts = [key for key in colours if key not in ("background", "surface", "panel", "rule", "bar")]
        assert all(themes.contrast(colours[key], theme.surface) >= themes.READABLE for key in texts)
        assert themes.contrast(colours["bar"], theme.background) >= 3  # no text, but what shows the steps


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_states_of_tokens_have_colours_of_their_own(path: Path) -> None:
    tokens = themes.read(path).tokens
    drafted = (tokens.accepted, tokens.bonus, tokens.correction, tokens.rejected, tokens.discarded)
    assert len(set(drafted)) == len(drafted)


def test_contrast_is_that_of_the_standard() -> None:
    assert themes.contrast("#000000", "#ffffff") == pytest.approx(21)
    assert themes.contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)  # the well-known near miss


def test_a_theme_of_the_user_replaces_the_shipped_one_and_may_be_faint(own: Path) -> None:
    (own / "dark.yaml").write_text(DARK.replace('quiet: "#8089a3"', 'quiet: "#30333d"'))
    assert themes.read(themes.file_of("dark")).too_faint() == ["quiet"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (DARK.replace('  bonus: "#7dc4ff"\n', ""), "bonus"),
        (DARK.replace('rule: "#2b3040"', "rule: #2b3040"), "rule"),  # without quotes it is a comment
        (DARK.replace('rule: "#2b3040"', "rule: grey"), "rule: 'grey'"),
        (DARK.replace('rule: "#2b3040"', "rule: ansi_red"), "rule: 'ansi_red'"),
        (DARK + "tint: 3\n", "tint"),
        ("dark: [", "line"),
        ("\xff", "utf-8"),
    ],
)
def test_a_bad_file_is_one_sentence(own: Path, text: str, complaint: str) -> None:
    path = own / "mine.yaml"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(BadInputError) as caught:
        themes.read(path)
    assert str(path) in caught.value.message and complaint in caught.value.message
    assert "\n" not in caught.value.message
