"""The cast, played on a terminal that understands just what it may use."""

import json
import re
from pathlib import Path
from typing import Any

from peagle_cli.recording.export.as_cast import DEFAULT_SIZE, cast_of
from peagle_cli.recording.export.panes import Pane, Style, clipped
from peagle_cli.trace.events import Changed, DraftBatch, Token
from tests.recording.export.test_figures import hostile
from tests.recordings import Recorded

ROW = re.compile(r"\x1b\[(\d+);1H((?:[^\x1b\x00-\x1f]|\x1b\[[\d;]+m)*)\x1b\[K")


def cast(path: Path) -> tuple[dict[str, Any], list[Any]]:
    header, *events = map(json.loads, cast_of(path))
    return header, events


def play(events: list[Any], until: float = float("inf")) -> list[str]:
    """The rows that are seen then, without their styles."""
    rows = [""] * DEFAULT_SIZE[1]
    for at, kind, output in events[1:-1]:
        if kind == "o" and at <= until:
            assert ROW.sub("", output) == ""
            for row, content in ROW.findall(output):
                rows[int(row) - 1] = re.sub(r"\x1b\[[\d;]+m", "", content)
    return rows


def test_is_an_asciicast(recorded: Recorded) -> None:
    header, events = cast(recorded.path)
    assert (header["version"], header["width"], header["height"]) == (2, *DEFAULT_SIZE)
    times = [at for at, _, _ in events]
    assert times == sorted(times)
    assert {kind for _, kind, _ in events} == {"o", "m"}


def test_marks_requests_and_changes(recorded: Recorded) -> None:
    markers = [label for _, kind, label in cast(recorded.path)[1] if kind == "m"]
    changes = [event for event in recorded.told[0] if isinstance(event, Changed)]
    assert markers == ["request 1", "main: depth 5 → 2", "main: method P-EAGLE → EAGLE-3", "request 2"]
    assert len(changes) == 2


def test_shows_the_lanes_beside_each_other(recorded: Recorded) -> None:
    rows = play(cast(recorded.path)[1])
    assert "REPLAY" in rows[0]
    assert rows[2].startswith("› And three <b>more</b>.")
    assert rows[3].startswith("P-EAGLE 4")
    assert "│ plain" in rows[3]
    assert rows[-1].startswith("12 tokens")


def test_no_control_sequence_comes_from_the_recording(recorded: Recorded, tmp_path: Path) -> None:
    _, events = cast(hostile(recorded, tmp_path, "\x1b[2J\x1b]0;owned\x07\u202e\r"))
    assert any("␛" in row for row in play(events))  # play() accepts no other sequence than the cast's own


def test_wraps_at_tokens_and_cuts_what_is_longer_than_a_row() -> None:
    pane = Pane(8)
    words = tuple(Token(i, text) for i, text in enumerate(("one", " two", " three", " 漢字漢字漢字", "\n", "end")))
    pane.add(DraftBatch("a", 0, "peagle", 7, words, 6, Token(9, "."), 7, 0, 0, 1))
    rows = ["".join(text for text, _ in row) for row in pane.tail(6)]
    assert rows == ["one two", "three", "漢字漢字", "漢字", "end.", ""]


def test_rows_are_as_wide_as_they_should_be() -> None:
    styled = clipped([("漢字漢字漢字", Style.PLAIN)], 5)
    assert re.sub(r"\x1b\[[\d;]+m", "", styled) == "漢字 "
