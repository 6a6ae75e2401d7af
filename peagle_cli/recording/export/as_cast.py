"""A recording as an asciicast (version 2) for asciinema: the lanes side by side, drawn as they grew.

https://docs.asciinema.org/manual/asciicast/v2/ A frame is drawn for every event, and of a frame the rows that differ
from the frame before. Markers stand at requests and where depth or method change.
"""

import json
from collections.abc import Iterator
from pathlib import Path

from peagle_cli.recording.export.panes import Pane, Row, Style, beside, clipped
from peagle_cli.recording.format import Header
from peagle_cli.recording.recording import MAX_PAGE_EVENTS, Run, load_to_show
from peagle_cli.text import printable
from peagle_cli.trace.events import Changed, Event, Started
from peagle_cli.trace.rounds import name_of

DEFAULT_SIZE = (100, 28)
SMALLEST_SIZE = (60, 16)
LARGEST_SIZE = (200, 60)

LONGEST_WAIT_S = 2.0
"""Players are asked to cut waits to this."""

LAST_FRAME_S = 3.0
"""How long the end of a request stays."""

_ROWS_AROUND = 5  # title, empty, prompt, lanes' names, and the figures at the bottom
_HIDE_CURSOR = "\x1b[?25l"


def cast_of(path: Path) -> Iterator[str]:
    """The cast, line by line. Raises `BadInputError` as `load_to_show` does."""
    recording = load_to_show(path, MAX_PAGE_EVENTS)
    columns, rows = _size(recording.header)
    yield _line(
        {
            "version": 2,
            "width": columns,
            "height": rows,
            "timestamp": int(recording.header.created.timestamp()),
            "idle_time_limit": LONGEST_WAIT_S,
            "title": printable(f"peagle: {recording.header.model}"),
        }
    )
    yield _line([0.0, "o", _HIDE_CURSOR])
    screen = _Screen(rows)
    begin = 0.0
    for number, run in enumerate(recording.runs, 1):
        if not len(run):
            continue
        yield _line([round(begin, 6), "m", f"request {number}"])
        stage = _Stage(recording.header, run, columns, rows)
        for at_s, event in zip(run.times, run, strict=True):
            at = round(begin + at_s - run.times[0], 6)
            if isinstance(event, Changed):
                yield _line([at, "m", f"{event.lane}: {event.words}"])
            stage.add(event)
            if output := screen.draw(stage.rows()):
                yield _line([at, "o", output])
        begin += run.times[-1] - run.times[0] + LAST_FRAME_S
    yield _line([round(begin, 6), "o", f"\x1b[{rows};1H"])


def _size(header: Header) -> tuple[int, int]:
    columns, rows = header.terminal or DEFAULT_SIZE
    return (
        min(max(columns, SMALLEST_SIZE[0]), LARGEST_SIZE[0]),
        min(max(rows, SMALLEST_SIZE[1]), LARGEST_SIZE[1]),
    )


def _line(value: object) -> str:
    return json.dumps(value, ensure_ascii=False) + "\n"


class _Screen:
    """What the player's terminal shows."""

    def __init__(self, rows: int) -> None:
        self._rows = [""] * rows

    def draw(self, rows: list[str]) -> str:
        """What to send for the screen to show `rows`."""
        changed = [i for i, (old, new) in enumerate(zip(self._rows, rows, strict=True)) if old != new]
        self._rows = rows
        return "".join(f"\x1b[{i + 1};1H{rows[i]}\x1b[K" for i in changed)


class _Stage:
    """One request on the screen: its prompt, and a pane for each lane."""

    def __init__(self, header: Header, run: Run, columns: int, rows: int) -> None:
        prompt = " ".join(run.asked.messages[-1].content.split())
        self._top = [
            clipped([(" REPLAY ", Style.MARK), (f" {header.about}", Style.QUIET)], columns),
            "",
            clipped([("› ", Style.QUIET), (prompt, Style.PROMPT)], columns),
        ]
        self._height = rows - _ROWS_AROUND
        width = max(1, columns // len(run.asked.lanes) - 3)
        self._panes = {lane: Pane(width) for lane in run.asked.lanes}
        self._names: dict[str, Row] = {}

    def add(self, event: Event) -> None:
        """Take in an event."""
        if isinstance(event, Started):
            name = name_of((event.method, event.depth))
            self._names[event.lane] = [(name, Style.PROMPT), (f" {event.drafter or ''}", Style.QUIET)]
        self._panes[event.lane].add(event)

    def rows(self) -> list[str]:
        """The screen's rows, as terminals understand them."""
        columns = [
            [self._names.get(lane, []), *pane.tail(self._height), [(pane.figures(), Style.QUIET)]]
            for lane, pane in self._panes.items()
        ]
        widths = [pane.width for pane in self._panes.values()]
        return [*self._top, *(beside(row, widths) for row in zip(*columns, strict=True))]
