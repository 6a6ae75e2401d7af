"""Draw the pictures of the documentation anew: a replayed demo in every theme and with every page
that it has, and a race.

    .venv/bin/python scripts/screenshots.py [FOLDER]

Needs no model. FOLDER is docs/images by default; the user's own themes and settings play no part.
"""

import os
import sys
import tempfile
from pathlib import Path

from peagle_cli import themes
from peagle_cli.recording import demos
from peagle_cli.tui.picture import svg_of

IMAGES = Path(__file__).parents[1] / "docs" / "images"
CHAT, CHAT_S = "code-at-depth-7", 3.0
RACE = "peagle-against-eagle3"
STATES = {"figures": ("f",), "inspector": ("i",), "themes": ("ctrl+t",)}
"""The keys that lead from the replay to each of its pages."""


def main(folder: Path) -> None:
    """Write the pictures into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    chat, race = demos.find(CHAT), demos.find(RACE)
    # The default theme is the one of all other pictures.
    worn = [theme for theme in themes.available() if theme != themes.DEFAULT]
    pictures = {f"theme-{theme}": svg_of(chat, CHAT_S, theme) for theme in worn}
    pictures |= {state: svg_of(chat, CHAT_S, keys=keys) for state, keys in STATES.items()}
    pictures |= {"replay": svg_of(chat, CHAT_S), "race": svg_of(race)}
    for name, picture in pictures.items():
        (folder / f"{name}.svg").write_text("".join(picture), encoding="utf-8")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as nowhere:
        os.environ["PEAGLE_CONFIG_DIR"] = nowhere
        main(Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES)
