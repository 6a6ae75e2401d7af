"""Shows on standard error how far a comparison is, and how long it will still take."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

import typer

_LINE_EVERY_S = 10.0


@contextlib.contextmanager
def rounds_shown(rounds: int) -> Iterator[Callable[[int], None]]:
    """Gives a function to call as each round begins, with the number of those before it; until then the engine warms
    up. On a terminal there is a bar that vanishes at the end, elsewhere a line now and then."""
    if sys.stderr.isatty():
        with _bar(rounds) as show:
            yield show
    else:
        yield _Lines(rounds).show


@contextlib.contextmanager
def _bar(rounds: int) -> Iterator[Callable[[int], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("Warming up", total=rounds)

        def show(done: int) -> None:
            if done == 0:
                bars.reset(task)
            bars.update(task, description=f"Round {done + 1} of {rounds}", completed=done)

        yield show


class _Lines:
    """A line when a round begins, unless the last was a moment ago."""

    def __init__(self, rounds: int) -> None:
        self._rounds = rounds
        self._began = self._last = time.monotonic()
        typer.echo("Warming up", err=True)

    def show(self, done: int) -> None:
        now = time.monotonic()
        if done == 0:
            self._began = now
        elif now - self._last < _LINE_EVERY_S:
            return
        self._last = now
        left = f", {(now - self._began) / done * (self._rounds - done):.0f} s left" if done else ""
        typer.echo(f"Round {done + 1} of {self._rounds}{left}", err=True)
