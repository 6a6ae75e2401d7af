"""What reports are made of: a line on what was measured, tables as text, Markdown and CSV, and plots in characters."""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from peagle_cli.trace.events import Machine
from peagle_cli.wording import counted

BY_POSITION = "accepted at position 1, 2, …"
"""The header of a column of `shares`."""


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


def as_csv(rows: Sequence[Mapping[str, object]]) -> str:
    """A line for each row, below one of names; all rows have the same ones."""
    text = io.StringIO()
    if rows:
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return text.getvalue()


def machine_line(model: str, engine: str, machine: Machine, versions: Mapping[str, str]) -> str:
    """What ran, on what, and how: every report carries it."""
    named = ", ".join(f"{name} {version}" for name, version in versions.items())
    return (
        f"{model} · {engine} on {machine.device} ({machine.name}, {counted(machine.threads, 'thread')}), "
        f"{machine.precision} · {named}"
    )


def machine_cells(model: str, engine: str, machine: Machine, versions: Mapping[str, str]) -> dict[str, Any]:
    """The same for a row of CSV."""
    named = " ".join(f"{name}={version}" for name, version in versions.items())
    return {"model": model, "engine": engine, **msgspec.to_builtins(machine), "versions": named}


def begin_plot(title: str, columns: int, rows: int) -> None:
    """Let what plotext draws from now on be a plot of this size."""
    import plotext

    plotext.clear_figure()
    plotext.theme("clear")
    plotext.plotsize(columns, rows)
    plotext.title(title)


def plotted() -> str:
    """What plotext has drawn, as lines without colours."""
    import plotext

    plot: str = plotext.uncolorize(plotext.build())
    return "\n".join(line.rstrip() for line in plot.splitlines())


def shares(by_position: Sequence[float]) -> str:
    """Shares by position in a cell: ".81 .62"."""
    return " ".join(f"{share:.2f}".removeprefix("0") for share in by_position)


def _pipes(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"
