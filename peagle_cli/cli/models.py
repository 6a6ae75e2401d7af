"""`peagle models`: the models known by name, where they are, and fetching one ahead of time."""

from typing import Annotated

import typer

from peagle_cli.cli.loading import loading_shown
from peagle_cli.errors import PeagleError
from peagle_cli.text import printable
from peagle_cli.trace.events import METHOD_NAMES
from peagle_cli.trace.rounds import name_of

models = typer.Typer(help="List, fetch and find models.", no_args_is_help=True)

Name = Annotated[
    str | None,
    typer.Argument(help="A name of `peagle models list`, a hub name or a folder.", show_default="the default model"),
]


@models.command("list")
def list_models() -> None:
    """Print the models known by name.

    Any other model can be named by hub name or folder: of the Llama family for the embedded engine, and whatever vLLM
    runs for vLLM.
    """
    from rich.console import Console
    from rich.table import Table

    from peagle_cli.engine.vllm.fit import need_of
    from peagle_cli.models.checkpoint import drafter_method
    from peagle_cli.models.presets import PRESETS
    from peagle_cli.models.served import SERVED

    console = Console(soft_wrap=True)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("name", "engine", "download", "memory", "here", "drafters"):
        table.add_column(column, no_wrap=True)
    for preset in PRESETS.values():
        drafters = ", ".join(METHOD_NAMES[drafter_method(folder)] for folder in preset.drafters)
        size = f"{preset.source.size / 1e6:.0f} MB"
        table.add_row(preset.name, "any", size, "–", _here(preset.name), drafters)
    for model in SERVED.values():
        drafters = ", ".join(name_of((drafter.method, drafter.depth)) for drafter in model.drafters)
        size, memory = f"{model.download / 1e9:.0f} GB", f"{need_of(model).total / 1e9:.0f} GB"
        table.add_row(model.name, "vllm", size, memory, _here(model.name), drafters)
    console.print(table)
    console.print()
    for model in SERVED.values():
        console.print(f"{model.title}: {model.repository}, {need_of(model).text}")
        for drafter in model.drafters:
            told = f"{drafter.weights / 1e9:.2g} GB, {drafter.weights_from}"
            console.print(f"  {METHOD_NAMES[drafter.method]}: {drafter.repository}, depth {drafter.depth} ({told})")


def _here(name: str) -> str:
    from peagle_cli.models import store

    return "no" if store.present_folder(name) is None else "yes"


@models.command()
def pull(name: Name = None) -> None:
    """Fetch a model and its drafters now, so that they need not be fetched later, and print the model's folder."""
    from peagle_cli.models import store

    with loading_shown() as on_progress:
        folder = store.target_folder(name, on_progress)
        store.drafter_folders((), name, on_progress)
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
