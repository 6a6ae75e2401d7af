"""`peagle sessions`: the recorded chats."""

import sys
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import typer

from peagle_cli import locations
from peagle_cli.errors import PeagleError
from peagle_cli.recording import sessions as folder
from peagle_cli.recording.overview import Overview, overview
from peagle_cli.text import json_document, printable
from peagle_cli.trace.rounds import name_of

_ENDLESS = 100_000  # columns of what is no terminal


class Session(msgspec.Struct, frozen=True):
    """A recording in the list. `overview` is None, and `problem` says why, where it cannot be read."""

    name: str
    path: str
    overview: Overview | None = None
    problem: str | None = None


def sessions(
    output: Annotated[Literal["text", "json"], typer.Option(help="Print a table, or a JSON array.")] = "text",
) -> None:
    """List the recorded chats, the latest last.

    Replay one with `peagle replay NAME`, continue its conversation with `peagle chat --resume NAME`.
    """
    found = [_session(path) for path in folder.recordings()]
    if output == "json":
        typer.echo(json_document(found), nl=False)
    elif found:
        _print_table(found)
    else:
        typer.echo(f"No chats are recorded in {locations.sessions()} yet.", err=True)


def _session(path: Path) -> Session:
    name = folder.name_of(path)
    try:
        return Session(name, str(path), overview(path))
    except PeagleError as error:
        return Session(name, str(path), problem=error.message)


def _print_table(found: list[Session]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(width=None if sys.stdout.isatty() else _ENDLESS)
    table = Table(box=None, pad_edge=False, header_style="bold", expand=console.is_terminal)
    for heading in ("name", "when", "model", "method"):
        table.add_column(heading, no_wrap=True)
    for heading in ("tokens", "tokens/s"):
        table.add_column(heading, no_wrap=True, justify="right")
    table.add_column("first prompt", no_wrap=True, ratio=1)  # cut where the terminal ends
    for session in found:
        cells = _cells(session.overview) if session.overview else ("", "", "", "", "", session.problem or "")
        table.add_row(*(Text(printable(cell)) for cell in (session.name, *cells)))
    console.print(table)


def _cells(seen: Overview) -> tuple[str, ...]:
    methods = ", ".join(map(name_of, seen.settings))
    speed = "" if seen.tokens_per_second is None else f"{seen.tokens_per_second:.1f}"
    prompt = " ".join(seen.prompt.split()) + ("" if seen.complete else " (broken off)")
    when = f"{seen.created.astimezone():%Y-%m-%d %H:%M}"
    return when, seen.model, methods, str(seen.tokens), speed, prompt
