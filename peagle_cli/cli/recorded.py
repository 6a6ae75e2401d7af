"""Recording what a command without a screen does."""

import typer

from peagle_cli.engine.protocol import Engine
from peagle_cli.engine.recorded import RecordedEngine
from peagle_cli.text import printable


def recorded(engine: Engine, record: bool, continues: str | None = None) -> Engine:
    """`engine`, recorded if so wanted; a warning on standard error says when recording fails."""
    return RecordedEngine(engine, _warn, continues) if record else engine


def _warn(sentence: str) -> None:
    typer.echo(f"Warning: {printable(sentence)}", err=True)
