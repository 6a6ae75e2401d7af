"""Whether to do without colours."""

import os
import re

_COLOURLESS = re.compile(r"dumb|vt[1-4]\d\d(-.*)?|.*-m(ono)?")  # terminals, by TERM; others are taken to have colours


def colourless() -> bool:
    """Whether the user wants no colours, or the terminal has none."""
    return bool(os.environ.get("NO_COLOR") or _COLOURLESS.fullmatch(os.environ.get("TERM", "")))
