"""The options that several commands share: which engine to open, and how the screen looks."""

from typing import Annotated

import typer

from peagle_cli import themes
from peagle_cli.engine.protocol import Precision

Model = Annotated[
    str | None,
    typer.Option(
        "--model", envvar="PEAGLE_MODEL", help="Target model: a name of `peagle models list`, a hub name, a folder."
    ),
]
Drafters = Annotated[
    list[str] | None,
    typer.Option(
        "--drafter",
        envvar="PEAGLE_DRAFTER",
        help="Drafter: a folder or a hub name; again for another method. Default: those known for the model.",
    ),
]
Dtype = Annotated[
    Precision | None,
    typer.Option(
        "--dtype",
        envvar="PEAGLE_DTYPE",
        help="Precision; int4 is bfloat16 with 4-bit weights. Default: the fastest that model and processor have.",
    ),
]
EngineName = Annotated[
    str,
    typer.Option(
        "--engine",
        envvar="PEAGLE_ENGINE",
        metavar="[torch|vllm|URL]",
        help="torch is the embedded one; vllm starts a server (its flags behind --); http://host:8000 uses one.",
    ),
]
Device = Annotated[
    str | None,
    typer.Option("--device", envvar="PEAGLE_DEVICE", help="cpu, cuda or cuda:N. Default: a GPU where there is one."),
]
Theme = Annotated[
    str | None,
    typer.Option("--theme", envvar="PEAGLE_THEME", help="The screen's colours: dark, light, … Ctrl+T lists them."),
]
Record = Annotated[
    bool, typer.Option("--record/--no-record", envvar="PEAGLE_RECORD", help="Keep a recording of the session.")
]

PROMPTS_HELP = "File of prompts: JSON lines with `turns`, or text with one prompt a line."


def check_theme(name: str | None) -> None:
    """Raise `BadInputError` for a theme that there isn't, also where no screen is opened."""
    if name is not None:
        themes.file_of(name)
