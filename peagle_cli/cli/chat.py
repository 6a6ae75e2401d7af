"""`peagle chat`: on a terminal the chat screen or a conversation that scrolls, in a pipe the answer to one prompt."""

import sys
from typing import Annotated, Literal

import typer

from peagle_cli.cli import terminal
from peagle_cli.cli.engine_flags import server_flags
from peagle_cli.cli.options import Device, Drafters, Dtype, EngineName, Model, Record, Theme, check_theme
from peagle_cli.engine.protocol import EngineSpec
from peagle_cli.engine.validate import MAX_CANDIDATES
from peagle_cli.errors import BadInputError
from peagle_cli.recording import sessions
from peagle_cli.recording.recording import conversation
from peagle_cli.trace.events import Method, Sampling
from peagle_cli.tui.options import ChatOptions

Output = Literal["text", "json", "jsonl"]
"""The reply's text as it comes, one object at the end, or every event as it happens."""


def chat(
    ctx: typer.Context,
    prompt: Annotated[
        str | None,
        typer.Argument(help="What to ask first. Text on standard input is appended to it.", show_default=False),
    ] = None,
    engine: EngineName = "torch",
    model: Model = None,
    drafter: Drafters = None,
    method: Annotated[
        Method | None,
        typer.Option(envvar="PEAGLE_METHOD", help="How to draft. Default: the best the drafters can, peagle first."),
    ] = None,
    depth: Annotated[
        int | None,
        typer.Option(envvar="PEAGLE_DEPTH", min=0, help="Tokens to draft per step. Default: 3; peagle 7, if not int4."),
    ] = None,
    auto: Annotated[
        bool, typer.Option("--auto", envvar="PEAGLE_AUTO", help="Let the depth follow the advice, step by step.")
    ] = False,
    temperature: Annotated[
        float, typer.Option(envvar="PEAGLE_TEMPERATURE", min=0, help="0 always takes the likeliest token.")
    ] = 0.0,
    top_p: Annotated[
        float, typer.Option(envvar="PEAGLE_TOP_P", min=0, max=1, help="Sample from this much of the probability.")
    ] = 1.0,
    top_k: Annotated[
        int, typer.Option(envvar="PEAGLE_TOP_K", min=0, help="Sample from this many likeliest tokens; 0: from all.")
    ] = 0,
    seed: Annotated[
        int | None, typer.Option(envvar="PEAGLE_SEED", min=0, help="Makes sampling repeatable.", show_default=False)
    ] = None,
    max_tokens: Annotated[int, typer.Option(envvar="PEAGLE_MAX_TOKENS", min=1, help="Tokens a reply may have.")] = 512,
    system: Annotated[
        str | None, typer.Option(envvar="PEAGLE_SYSTEM", help="System message. Default: the model's own.")
    ] = None,
    theme: Theme = None,
    dtype: Dtype = None,
    device: Device = None,
    plain: Annotated[
        bool, typer.Option("--plain", help="No screen: stream the answer, or talk line by line where nothing is asked.")
    ] = False,
    output: Annotated[
        Output | None, typer.Option(help="Stream text, or print one JSON object, or stream events as JSON lines.")
    ] = None,
    candidates: Annotated[
        int, typer.Option(min=0, max=MAX_CANDIDATES, help="With jsonl: each position's likeliest tokens, this many.")
    ] = 0,
    record: Record = True,
    serve: Annotated[
        bool, typer.Option("--serve", help="Open the screen in a browser on this machine, not on the terminal.")
    ] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="With --serve: where to listen; 0: where it is free.")
    ] = 8000,
    resume: Annotated[
        str | None,
        typer.Option(
            help="Continue a recorded chat: a name of `peagle sessions`, a file, or last.", show_default=False
        ),
    ] = None,
) -> None:
    """Talk to a model and see every draft batch.

    On a terminal this opens the chat screen; with --plain and no prompt, a conversation that scrolls. In a pipe, or
    with a prompt and --plain or --output, it streams the answer and ends. Options that name a variable can also be set
    in config.toml (see `peagle locate`).
    """
    on_terminal = terminal.is_there()
    check_theme(theme)
    if candidates and output != "jsonl":
        raise BadInputError("--candidates is for events.", "Add --output jsonl, or leave it out.")
    resumed = sessions.find(resume) if resume else None
    history = conversation(resumed) if resumed else ()
    if history and history[0].role == "system":
        system, history = history[0].content if system is None else system, history[1:]
    options = ChatOptions(
        spec=EngineSpec(
            model=model,
            drafters=tuple(drafter or ()),
            device=device,
            dtype=dtype,
            engine=engine,
            method=method,
            depth=depth,
            flags=server_flags(ctx),
        ),
        prompt=_prompt(prompt),
        method=method,
        depth=depth,
        auto=auto,
        sampling=Sampling(temperature=temperature, top_p=top_p, top_k=top_k, seed=seed),
        max_tokens=max_tokens,
        system=system,
        theme=theme,
        record=record,
        history=history,
        continues=sessions.name_of(resumed) if resumed else None,
    )
    if serve:
        if plain or output is not None:
            raise BadInputError("--serve opens the screen.", "Leave out --plain and --output.")
        from peagle_cli.cli.serve import serve as serve_chats

        serve_chats(options, port)
        return
    if on_terminal and not plain and output is None:
        terminal.check("--plain")
        from peagle_cli.tui.app import run_chat

        raise typer.Exit(run_chat(options))
    if on_terminal and output is None and options.prompt is None:
        from peagle_cli.cli.plain_chat import converse

        converse(options)
    from peagle_cli.cli.plain import answer

    answer(options, output or "text", candidates)


def _prompt(argument: str | None) -> str | None:
    """The argument, a blank line, and what standard input holds unless it is a terminal; None for neither."""
    piped = b"" if sys.stdin.isatty() else sys.stdin.buffer.read()
    try:
        parts = [(argument or "").encode(errors="surrogateescape").decode(), piped.decode().rstrip("\n")]
    except UnicodeDecodeError as error:
        raise BadInputError("The prompt is not UTF-8 text.", "Give it as text in that encoding.") from error
    return "\n\n".join(part for part in parts if part.strip()) or None
