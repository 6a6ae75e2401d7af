"""`peagle export`: a recording as something that others can read."""

import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from peagle_cli.errors import BadInputError, PeagleError
from peagle_cli.recording import demos

Format = Literal["cast", "html", "svg", "markdown", "csv", "json"]


def export(
    recording: Annotated[str, typer.Argument(help="A demo, a name of `peagle sessions`, a file, or last.")],
    to: Annotated[Format, typer.Option(help="What to make of it.")],
    at: Annotated[
        float | None,
        typer.Option(
            min=0, help="With svg: the moment, in seconds of the replay. Default: its end.", show_default=False
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The file to write. Default: standard output.")] = None,
) -> None:
    """Export a recording.

    cast plays in asciinema, html is a page that replays in a browser without a network, svg is a picture of the replay
    screen, markdown is a report, csv has a line for each engine step, json the figures of each reply.
    """
    if at is not None and to != "svg":
        raise BadInputError("Only a picture is of a moment.", "Leave out --at, or export --to svg.")
    pieces = _exporter(to, at)(demos.find(recording))
    if out is None:
        for piece in pieces:
            sys.stdout.write(piece)
    else:
        _write(pieces, out)


def _exporter(to: Format, at: float | None) -> Callable[[Path], Iterator[str]]:
    match to:
        case "csv":
            from peagle_cli.recording.export.as_csv import csv_of

            return csv_of
        case "json":
            from peagle_cli.recording.export.as_json import json_of

            return json_of
        case "markdown":
            from peagle_cli.recording.export.as_markdown import markdown_of

            return markdown_of
        case "html":
            from peagle_cli.recording.export.as_html import html_of

            return html_of
        case "svg":
            from peagle_cli.tui.picture import svg_of

            return partial(svg_of, at_s=at)
        case "cast":
            from peagle_cli.recording.export.as_cast import cast_of

            return cast_of


def _write(pieces: Iterator[str], out: Path) -> None:
    """Write the file as a whole or not at all."""
    if out.exists() and not out.is_file():
        raise BadInputError(f"{out} is not a file.", "Choose another with --out.")
    part = out.with_name(f"{out.name}.part")
    try:
        with part.open("w", encoding="utf-8", newline="") as file:
            file.writelines(pieces)
        part.replace(out)
    except OSError as error:
        raise PeagleError(f"{out} cannot be written: {error.strerror}.", "Choose another file with --out.") from error
    finally:
        part.unlink(missing_ok=True)
