"""`peagle replay`: on a terminal the replay screen, in a pipe the recorded replies as they came."""

import math
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from peagle_cli.cli import terminal
from peagle_cli.cli.options import Theme, check_theme
from peagle_cli.errors import BadInputError
from peagle_cli.recording import demos
from peagle_cli.text import printable

if TYPE_CHECKING:
    from peagle_cli.engine.replay import ReplayEngine

Output = Literal["text", "jsonl"]
"""The replies' text as it came, or every event as it happened."""


def replay(
    recording: Annotated[
        str | None,
        typer.Argument(help="A demo, a name of `peagle sessions`, a file, or last. Default: offers the demos."),
    ] = None,
    speed: Annotated[float, typer.Option(help="How many times as fast as it was recorded.")] = 1.0,
    max_idle: Annotated[
        float | None, typer.Option(min=0, help="Cut waits between two events to this many seconds.", show_default=False)
    ] = None,
    theme: Theme = None,
    plain: Annotated[bool, typer.Option("--plain", help="Stream the replies as text, also on a terminal.")] = False,
    output: Annotated[Output | None, typer.Option(help="Stream text, or stream events as JSON lines.")] = None,
) -> None:
    """Replay a recording at the pace of its making.

    On a terminal this opens the replay screen, where it can be stepped through, forwards and backwards. In a pipe, or
    with --plain or --output, it streams the replies; of a race, the text of the first lane and the figures of all.
    """
    from peagle_cli.engine.replay import ReplayEngine, check_pace
    from peagle_cli.recording.recording import Recording, load_to_show

    on_screen = terminal.is_there() and not plain and output is None
    if on_screen:
        terminal.check("--plain")
    check_theme(theme)
    longest = math.inf if max_idle is None else max_idle
    load = load_to_show if on_screen else Recording.load
    loaded = load(demos.find(recording)) if recording else None
    check_pace(speed, longest)
    if loaded is None and not demos.demos():
        raise BadInputError("No demos come with this build.", "Name a recording: `peagle sessions` lists yours.")
    if on_screen:
        from peagle_cli.tui.app import run_replay

        raise typer.Exit(run_replay(loaded, speed, longest, theme))
    if loaded is None:
        _offer()
    else:
        _stream(ReplayEngine(loaded, speed, longest), output or "text")


def _offer() -> None:
    """Print the demos."""
    found = demos.demos()
    width = max((len(demo.name) for demo in found), default=0)
    for demo in found:
        typer.echo(f"{demo.name:<{width}}  {demo.title}")
    typer.echo("Name one of these, or a recording of yours: `peagle sessions` lists them.", err=True)


def _stream(engine: "ReplayEngine", output: Output) -> None:
    """Put out the replies to all requests, one after the other."""
    from peagle_cli.cli.plain import JsonLinesWriter, Reply, TextWriter

    recording = engine.recording
    typer.echo(printable(f"REPLAY · {recording.header.about}"), err=True)
    for request in engine.requests:
        writer = TextWriter() if output == "text" else JsonLinesWriter()
        if output == "text":
            typer.echo(printable(f"› {request.messages[-1].content}\n"))
        replies = {lane.name: Reply() for lane in request.lanes}
        for event in engine.run(request):
            replies[event.lane].add(event)
            if output == "jsonl" or event.lane == request.lanes[0].name:
                writer.event(event)
        for reply in replies.values():
            writer.end(reply)
    if recording.torn:
        typer.echo("The recording's last line was cut off and is left out.", err=True)
