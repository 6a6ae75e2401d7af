"""Shows on standard error how far a download or a loading engine is."""

import contextlib
import sys
from collections.abc import Iterator

import typer

from peagle_cli.models.progress import OnProgress, Progress


@contextlib.contextmanager
def loading_shown() -> Iterator[OnProgress]:
    """On a terminal a bar that vanishes at the end; elsewhere one line for each download."""
    if sys.stderr.isatty():
        with _bar() as show:
            yield show
    else:
        yield _Lines().show


@contextlib.contextmanager
def _bar() -> Iterator[OnProgress]:
    from rich.console import Console
    from rich.filesize import decimal
    from rich.progress import BarColumn, SpinnerColumn, TextColumn
    from rich.progress import Progress as Bars

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[size]}"))
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("Starting", total=None, size="")

        def show(progress: Progress) -> None:
            size = f"{decimal(progress.done)} of {decimal(progress.total)}" if progress.unit == "bytes" else ""
            total = progress.total or None
            bars.update(task, description=progress.stage, completed=progress.done, total=total, size=size)

        yield show


class _Lines:
    """A line where a download begins, for logs."""

    def __init__(self) -> None:
        self._stage = ""

    def show(self, progress: Progress) -> None:
        if progress.unit == "bytes" and progress.stage != self._stage:
            self._stage = progress.stage
            typer.echo(f"{progress.stage} ({progress.total / 1e6:.0f} MB)", err=True)
