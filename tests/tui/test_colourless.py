"""Where there is no colour, glyphs and styles tell every state of a token."""

import math
import re
from typing import Any

import pytest
from rich.segment import Segment
from textual.pilot import Pilot

from peagle_cli.recording import demos
from peagle_cli.recording.recording import load_to_show
from peagle_cli.tui.app import ReplayApp
from peagle_cli.tui.model import Kind
from peagle_cli.tui.widgets.transcript import TranscriptView

_STATES = (Kind.ACCEPTED, Kind.BONUS, Kind.CORRECTION, Kind.PLAIN, Kind.REJECTED, Kind.DISCARDED)


def replay() -> ReplayApp:
    (first, *_) = demos.demos()
    return ReplayApp(load_to_show(first.path), 1.0, math.inf, None)


def segments(pilot: Pilot[Any]) -> list[Segment]:
    view = pilot.app.screen.query_one(TranscriptView)
    return [segment for y in range(view.size.height) for segment in view.render_line(y)]


@pytest.mark.parametrize(("variable", "value"), [("NO_COLOR", "1"), ("TERM", "vt100"), ("TERM", "xterm-mono")])
async def test_every_state_differs_without_colour_and_strikethrough(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    async with replay().run_test(size=(100, 30)) as pilot:
        await pilot.press("end")
        pilot.app.screen.query_one(TranscriptView).rejected = "all"
        await pilot.pause()
        view = pilot.app.screen.query_one(TranscriptView)
        styles = {kind: view.get_component_rich_style(f"transcript--{kind}") for kind in _STATES}
        text = "".join(segment.text for segment in segments(pilot))
        assert re.search(r"\[-.+?-\]", text) and re.search(r"\(-.+?-\)", text)
        marks = {Kind.REJECTED: "[-", Kind.DISCARDED: "(-"}
        told = {(style.bold, style.underline, marks.get(kind)) for kind, style in styles.items()}
        assert len(told) == len(_STATES)


async def test_marks_stay_away_where_there_are_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    async with replay().run_test(size=(100, 30)) as pilot:
        await pilot.press("end")
        pilot.app.screen.query_one(TranscriptView).rejected = "all"
        await pilot.pause()
        assert "[-" not in "".join(segment.text for segment in segments(pilot))
