"""A recording as a table of its engine steps, for spreadsheets and data frames."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from peagle_cli.recording.format import Asked, Happened
from peagle_cli.recording.reader import Reader
from peagle_cli.text import printable
from peagle_cli.trace.events import DraftBatch

COLUMNS = (
    *("request", "lane", "at_s", "step", "method", "depth", "drafted", "accepted", "emitted"),
    *("draft_s", "verify_s", "clock_s", "prefill", "text"),
)
_FORMULA_STARTS = ("=", "+", "-", "@", "\t")


def csv_of(path: Path) -> Iterator[str]:
    """One line per step behind a line of headings; `drafted` counts tokens, `text` is what the step emitted.

    A text that a spreadsheet would take for a formula begins with an apostrophe.
    """
    yield _line(COLUMNS)
    request = 0
    with Reader(path) as reader:
        for line in reader:
            match line.entry:
                case Asked():
                    request += 1
                case Happened(at_s=at_s, event=DraftBatch() as batch):
                    yield _line(_cells(request, at_s, batch))


def _cells(request: int, at_s: float, batch: DraftBatch) -> tuple[object, ...]:
    return (
        *(request, _inert(batch.lane), at_s, batch.step, batch.method, batch.depth),
        *(len(batch.drafted), batch.accepted, batch.emitted),
        *(batch.draft_s, batch.verify_s, batch.clock_s, batch.prefill, _inert(batch.text)),
    )


def _inert(text: str) -> str:
    text = printable(text)
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text


def _line(cells: tuple[object, ...]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(cells)
    return line.getvalue()
