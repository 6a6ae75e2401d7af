"""Shows on standard error how much training data has been written, how fast, and how long the rest will take."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

import typer

_LINE_EVERY_S = 30.0
_RATE_OVER_S = 300.0
"""Texts come to their end in waves: a rate over less would jump."""


@contextlib.contextmanager
def writing_shown(name: str, tokens: int) -> Iterator[Callable[[int], None]]:
    """Gives a function to call with the number of tokens that there are, of `tokens` in the end; `name` writes them.

    On a terminal there is a bar, elsewhere a line now and then.
    """
    if sys.stderr.isatty():
        with _bar(name, tokens) as show:
            yield show
    else:
        yield _Lines(name, tokens).show


@contextlib.contextmanager
def _bar(name: str, tokens: int) -> Iterator[Callable[[int], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} of {task.total:,.0f} tokens{task.fields[rate]}"),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    with Progress(*columns, console=Console(stderr=True), speed_estimate_period=_RATE_OVER_S) as bar:
        task = bar.add_task(f"Writing with {name}", total=tokens, rate="")

        def show(done: int) -> None:
            speed = bar.tasks[task].speed
            bar.update(task, completed=done, rate=f", {speed:,.0f} a second" if speed else "")

        yield show


class _Lines:
    """For logs. What was there before the first call is in no rate."""

    def __init__(self, name: str, tokens: int) -> None:
        self._tokens = tokens
        self._first: tuple[float, int] | None = None
        self._last = time.monotonic()
        typer.echo(f"Writing with {name}", err=True)

    def show(self, done: int) -> None:
        now = time.monotonic()
        began, before = self._first = self._first or (now, done)
        if done == before or (now - self._last < _LINE_EVERY_S and done < self._tokens):
            return
        self._last = now
        rate = (done - before) / (now - began)
        minutes = max(0, self._tokens - done) / rate / 60
        typer.echo(f"{done:,} of {self._tokens:,} tokens, {rate:,.0f} a second, {minutes:.0f} min left", err=True)
