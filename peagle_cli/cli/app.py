"""The `peagle` command: its subcommands, and the one place where errors become a sentence and an exit code.

Light to import: each command's module imports what is heavy only when it runs.
"""

import errno
import sys
import traceback
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from peagle_cli import __version__, settings
from peagle_cli.cli import streams
from peagle_cli.cli.bench import bench
from peagle_cli.cli.chat import chat
from peagle_cli.cli.compare import CompareCommand, compare
from peagle_cli.cli.config import config
from peagle_cli.cli.doctor import doctor
from peagle_cli.cli.engine_flags import EngineCommand
from peagle_cli.cli.export import export
from peagle_cli.cli.locate import locate
from peagle_cli.cli.models import models
from peagle_cli.cli.profile import profile
from peagle_cli.cli.replay import replay
from peagle_cli.cli.sessions import sessions
from peagle_cli.cli.tap import tap
from peagle_cli.cli.train import train
from peagle_cli.errors import EXIT_RUNTIME, PeagleError
from peagle_cli.text import printable

TYPERS_OWN = (typer.Exit, typer.Abort, typer.TyperException, BrokenPipeError)
"""What Typer turns into an exit code itself: 2 for wrong usage; 130 for Ctrl+C, which is no `Exception`."""


class Program(TyperGroup):
    """All commands together: `--debug` may stand anywhere before `--`, and what a command raises ends here.

    A context is `Any` because Typer keeps the class it promises here to itself.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Move `--debug` to the front, where it is declared."""
        end = args.index("--") if "--" in args else len(args)
        if "--debug" in args[:end]:
            args = ["--debug", *(arg for arg in args[:end] if arg != "--debug"), *args[end:]]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except TYPERS_OWN:
            raise
        except PeagleError as error:
            _report(f"{error.message}\n{error.hint}", error, ctx.params["debug"])
            raise typer.Exit(error.exit_code) from error
        except Exception as error:
            sentence = f"peagle met an error it did not foresee: {type(error).__name__}: {error}"
            hint = "With --debug it shows where."
            if isinstance(error, OSError) and error.errno == errno.ENOSPC:
                sentence, hint = "There is no space left for what peagle writes.", "Free some, or write it elsewhere."
            _report(f"{sentence}\n{hint}", error, ctx.params["debug"])
            raise typer.Exit(EXIT_RUNTIME) from error


app = typer.Typer(
    cls=Program,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(cls=EngineCommand)(chat)
app.command(cls=CompareCommand)(compare)
app.command()(profile)
app.command()(bench)
app.add_typer(models, name="models")
app.command()(sessions)
app.command()(replay)
app.command()(export)
app.command()(doctor)
app.command()(tap)
app.command()(locate)
app.command()(config)
app.add_typer(train, name="train")


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"peagle {__version__}")
        raise typer.Exit


@app.callback()
def peagle(
    ctx: typer.Context,
    debug: Annotated[bool, typer.Option("--debug", help="Show an error's traceback; may stand anywhere.")] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    """Explore speculative decoding: see every draft batch of a local P-EAGLE engine as it streams."""
    command = ctx.invoked_subcommand
    if command and (names := settings.heeded_by(command)):
        made = settings.read(settings.config_file())
        ctx.default_map = {command: {name: made[name] for name in names if name in made}}


def main() -> None:
    """Run the command line and exit with its code."""
    streams.prepare()
    app(prog_name="peagle")


def _report(text: str, error: Exception, debug: bool) -> None:
    """Tell the user what went wrong, on standard error."""
    if debug:
        traceback.print_exception(error, file=sys.stderr)
    typer.echo(f"Error: {printable(text.strip())}", err=True)
