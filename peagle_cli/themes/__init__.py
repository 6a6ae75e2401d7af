"""Themes: the screen's colours as YAML files. Those that ship lie beside this module, the user's own in
`locations.themes()`; one of theirs replaces the shipped one of its name. Knows no screen.

A file names every colour of `Theme`, and no other key. All its colours are "#rrggbb", or all are the terminal's own:
"ansi_default", "ansi_red", "ansi_bright_red" and so on.
"""

import re
from pathlib import Path

import msgspec

from peagle_cli import locations
from peagle_cli.errors import BadInputError

DEFAULT = "dark"
READABLE = 4.5
"""The contrast that text has at least, by WCAG 2.1, success criterion 1.4.3."""

_SHIPPED = Path(__file__).parent
_RGB = re.compile(r"#[0-9a-fA-F]{6}")
_ANSI = re.compile(r"ansi_(default|(bright_)?(black|red|green|yellow|blue|magenta|cyan|white))")
_NOT_TEXT = ("background", "surface", "panel", "rule", "bar")


class Tokens(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A colour for every state of a token, by the names of `tui.model.Kind`, and for the bar between two steps."""

    prompt: str
    plain: str
    accepted: str
    bonus: str
    correction: str
    rejected: str
    discarded: str
    bar: str


class Theme(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The colours of one theme. `dark` says whether its background is; `quiet` is the colour of labels, `rule` that of
    lines, `surface` and `panel` stand out from the background."""

    description: str
    dark: bool
    background: str
    surface: str
    panel: str
    foreground: str
    quiet: str
    rule: str
    primary: str
    accent: str
    error: str
    tokens: Tokens

    @property
    def ansi(self) -> bool:
        """Whether the colours are the terminal's own."""
        return self.background.startswith("ansi_")

    def colours(self) -> dict[str, str]:
        """All colours by key; those of tokens by their own."""
        own = {key: value for key, value in msgspec.structs.asdict(self).items() if isinstance(value, str)}
        del own["description"]
        return own | msgspec.structs.asdict(self.tokens)

    def too_faint(self) -> list[str]:
        """The texts whose contrast to the background is less than `READABLE`. Of the terminal's own colours nothing is
        known."""
        if self.ansi:
            return []
        texts = {key: colour for key, colour in self.colours().items() if key not in _NOT_TEXT}
        return [key for key, colour in texts.items() if contrast(colour, self.background) < READABLE]


def available() -> dict[str, Path]:
    """The file of each theme by its name, the default first, then those that ship, then the user's."""
    shipped = {path.stem: path for path in sorted(_SHIPPED.glob("*.yaml"))}
    own = {path.stem: path for path in sorted(locations.themes().glob("*.yaml"))}
    return {DEFAULT: shipped[DEFAULT]} | shipped | own


def file_of(name: str) -> Path:
    """The file of the theme `name`. Raises `BadInputError` when there is none."""
    if (path := available().get(name)) is None:
        raise BadInputError(f"There is no theme called {name!r}.", f"Choose one of {', '.join(available())}.")
    return path


def read(path: Path) -> Theme:
    """The theme in a file. Raises `BadInputError`, naming file and key, for whatever is not one."""
    try:
        theme = msgspec.yaml.decode(path.read_text(encoding="utf-8"), type=Theme)
    except (OSError, ValueError, msgspec.DecodeError) as error:
        raise _unusable(path, " ".join(str(error).split())) from error
    notation = _ANSI if theme.ansi else _RGB
    for key, colour in theme.colours().items():
        if not notation.fullmatch(colour):
            kind = "colour of the terminal, as its background is" if theme.ansi else "colour"
            raise _unusable(path, f"{key}: {colour!r} is no {kind}")
    return theme


def contrast(one: str, other: str) -> float:
    """The contrast of two "#rrggbb" colours, from 1 to 21, by WCAG 2.1."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    """The relative luminance of "#rrggbb", from 0 to 1, by WCAG 2.1."""
    channels = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _unusable(path: Path, why: str) -> BadInputError:
    return BadInputError(
        f"The theme in {path} cannot be used: {why}.",
        'A colour is "#rrggbb", in quotes, or one of the terminal\'s own, as ansi_green. Mend the file.',
    )
