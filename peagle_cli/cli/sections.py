"""Tables of reports, as text and as Markdown."""

from collections.abc import Sequence
from typing import NamedTuple

NONE = "–"


class Section(NamedTuple):
    """A table: the first column is left-aligned and names the row."""

    title: str
    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


def as_text(section: Section) -> str:
    """Its title, and columns aligned by spaces."""
    table = [section.header, *section.rows]
    widths = [max(len(row[i]) for row in table) for i in range(len(section.header))]
    lines = ["  ".join((row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:]))).rstrip() for row in table]
    return "\n".join([section.title, *lines] if section.title else lines)


def as_markdown(section: Section) -> str:
    """A heading and a table."""
    lines = [f"## {section.title}\n"] if section.title else []
    lines.append(_pipes(section.header))
    lines.append(_pipes(("---", *["---:"] * (len(section.header) - 1))))
    lines += [_pipes(row) for row in section.rows]
    return "\n".join(lines)


def number(value: float | None, form: str) -> str:
    """A number in the given format, a dash for None."""
    return NONE if value is None else format(value, form)


def _pipes(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"
