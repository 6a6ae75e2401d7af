"""`peagle models`: the models known by name, where they are, and fetching one ahead of time."""

from typing import Annotated

import typer

from peagle_cli.cli.loading import loading_shown
from peagle_cli.errors import PeagleError
from peagle_cli.text import printable
from peagle_cli.trace.events import METHOD_NAMES

models = typer.Typer(help="List, fetch and find models.", no_args_is_help=True)

Name = Annotated[
    str | None,
    typer.Argument(help="A name of `peagle models list`, a hub name or a folder.", show_default="the default model"),
]


@models.command("list")
def list_models() -> None:
    """Print the models known by name. Any other Llama-family model can be named by hub name or folder."""
    from rich.console import Console
    from rich.table import Table

    from peagle_cli.models import store
    from peagle_cli.models.checkpoint import drafter_method
    from peagle_cli.models.presets import PRESETS

    table = Table("name", "download", "on disk", "here", "drafters", box=None, pad_edge=False, header_style="bold")
    for preset in PRESETS.values():
        here = "yes" if store.preset_folder(preset).is_dir() else "no"
        drafters = ", ".join(METHOD_NAMES[drafter_method(folder)] for folder in preset.drafters)
        table.add_row(preset.name, f"{preset.source.size / 1e6:.0f} MB", f"{preset.disk / 1e6:.0f} MB", here, drafters)
    Console().print(table)


@models.command()
def pull(name: Name = None) -> None:
    """Fetch a model now, so that it need not be fetched later, and print its folder."""
    from peagle_cli.models import store

    with loading_shown() as on_progress:
        folder = store.target_folder(name, on_progress)
    typer.echo(printable(str(folder)))


@models.command()
def path(name: Name = None) -> None:
    """Print the folder of a model that is here: configuration, weights and tokeniser in Hugging Face's form."""
    from peagle_cli.models import store

    folder = store.present_folder(name)
    if folder is None:
        command = f"peagle models pull {name or ''}".strip()
        raise PeagleError(f"{name or 'The default model'} is not here yet.", f"Fetch it with `{command}`.")
    typer.echo(printable(str(folder)))
