"""`peagle tap`: what to add to a vLLM server of one's own, so that peagle sees every step of it."""

import shlex
from typing import Annotated

import typer

from peagle_cli import locations


def tap(
    port: Annotated[int, typer.Option(min=1, max=65535, help="The server's port.")] = 8000,
    listen: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Where the tap listens: ipc:///a/folder, or tcp://address:port for other machines, which opens it to "
            "all who reach that address. Default: a folder of your own on this machine.",
            show_default=False,
        ),
    ] = None,
    asynchronous: Annotated[
        bool,
        typer.Option(
            "--async", help="For --async-scheduling: rejected drafts stay unknown, and depth and pace the server's."
        ),
    ] = False,
) -> None:
    """Print the variables and flags that put peagle's tap into a vLLM server.

    The tap tells every step to whoever listens, changes depth and pace for those who ask, and otherwise leaves the
    server as it is. Its Python needs no peagle, only the folder that is named here; on another machine, install peagle
    there with `pip install --no-deps peagle`.
    """
    from peagle_cli.engine.vllm.launch import package_beside, tap_flags

    folder = locations.cache() / "tap"
    folder.mkdir(parents=True, exist_ok=True)
    package_beside(folder)
    address = listen or f"ipc://{locations.tap(port)}"
    variables = {"PEAGLE_TAP": address, "PYTHONPATH": str(folder), "VLLM_USE_V2_MODEL_RUNNER": "0"}
    words = [
        *(f"{name}={shlex.quote(value)}" for name, value in variables.items()),
        # Not `vllm serve`: in the build for CPUs, that looks for a package of another name and ends.
        *("python", "-m", "vllm.entrypoints.openai.api_server", "--model", "MODEL", "--port", str(port)),
        *map(shlex.quote, tap_flags(asynchronous=asynchronous)),
    ]
    typer.echo(" ".join(words))
    named = f"PEAGLE_TAP={shlex.quote(_reached_at(address))} " if listen else ""
    typer.echo(f"Then: {named}peagle chat --engine http://localhost:{port}", err=True)
    if listen and listen.startswith("tcp://"):
        typer.echo("Whoever reaches that address can read all replies, and change their depth and pace.", err=True)


def _reached_at(address: str) -> str:
    """What others call an address on which a tap listens."""
    return address.replace("//0.0.0.0:", "//HOST:").replace("//*:", "//HOST:")
