"""Pictures of the replay screen, also of recordings that mean harm."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from peagle_cli.tui.picture import svg_of
from tests.recording.export.test_figures import hostile
from tests.recordings import Recorded

SVG = "{http://www.w3.org/2000/svg}"


def words(svg: str) -> str:
    """All text of the picture."""
    texts = ElementTree.fromstring(svg).iter(f"{SVG}text")
    return "\n".join("".join(text.itertext()) for text in texts).replace("\N{NO-BREAK SPACE}", " ")


def test_shows_the_moment(recorded: Recorded) -> None:
    beginning, end = ("".join(svg_of(recorded.path, at_s)) for at_s in (0.0, None))
    assert "Name three rivers." in words(beginning)
    assert "And three <b>more</b>." in words(end)
    assert "REPLAY" in words(end)


def test_asks_no_server_for_fonts(recorded: Recorded) -> None:
    assert "url(http" not in "".join(svg_of(recorded.path)).replace("url('http", "url(http")


@pytest.mark.parametrize(
    "text", ["</svg><script>x</script>", "\x1b[2J\x07\u202e\u0085", "界" * 900, "\n" * 500, "\t]]>&"]
)
def test_hostile_text_stays_text(recorded: Recorded, tmp_path: Path, text: str) -> None:
    path = hostile(recorded, tmp_path, text)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        for message in line.get("messages", ()):
            message["content"] = text
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    svg = "".join(svg_of(path))
    tree = ElementTree.fromstring(svg)
    assert not list(tree.iter(f"{SVG}script"))
    assert not any(unsafe in svg for unsafe in ("\x1b", "\x07", "\u202e", "\u0085"))
