"""How far a download, a conversion or a loading engine is: told through a callback, shown by whoever called."""

from collections.abc import Callable
from typing import Literal

import msgspec


class Progress(msgspec.Struct, frozen=True, tag=True):
    """A stage of loading, for people to read; with `total`, how much of it is done."""

    stage: str
    done: int = 0
    total: int = 0
    unit: Literal["", "bytes"] = ""


OnProgress = Callable[[Progress], None]


def unheard(progress: Progress) -> None:
    """An `OnProgress` for callers that do not want to know."""
