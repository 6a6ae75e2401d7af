"""The replay screen at a moment as an SVG picture."""

import asyncio
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from peagle_cli.recording.recording import Recording, load_to_show
from peagle_cli.tui.app import ReplayApp
from peagle_cli.tui.screens.replay import ReplayScreen

DEFAULT_SIZE = (120, 36)
LARGEST_SIZE = (300, 100)
SMALLEST_SIZE = (60, 20)

# Rich's pictures name fonts of a server, which a picture should not ask for; and they leave it open whether spaces at
# the edge of a text count.
_WEB_FONT = re.compile(r"@font-face\s*{[^}]*}")


def svg_of(path: Path, at_s: float | None = None, theme: str | None = None, keys: Sequence[str] = ()) -> Iterator[str]:
    """The screen `at_s` seconds into the replay, None for its end, at the size of the terminal it was recorded on,
    in a theme, None for the default; after some keys have been pressed there.

    Raises `BadInputError` as `load_to_show` does, and for a theme that there isn't.
    """
    yield asyncio.run(_picture(load_to_show(path), math.inf if at_s is None else at_s, theme, keys))


async def _picture(recording: Recording, at_s: float, theme: str | None, keys: Sequence[str]) -> str:
    size = recording.header.terminal or DEFAULT_SIZE
    columns, rows = (
        min(max(own, smallest), largest)
        for own, smallest, largest in zip(size, SMALLEST_SIZE, LARGEST_SIZE, strict=True)
    )
    app = ReplayApp(recording, 1.0, math.inf, theme)
    async with app.run_test(size=(columns, rows)) as pilot:
        screen = app.screen
        assert isinstance(screen, ReplayScreen)
        screen.seek(screen.playback.position_at(at_s))
        while screen.seeking:
            await pilot.pause(0.01)
        await pilot.pause()  # a race's lanes are mounted,
        await pilot.pause()  # and laid out
        await pilot.press(*keys)
        await pilot.pause()
        return _WEB_FONT.sub("", app.export_screenshot()).replace("<text ", '<text xml:space="preserve" ')
