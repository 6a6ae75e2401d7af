"""`peagle bench`: how fast peagle is on this machine, beside other programs that are installed."""

import contextlib
import datetime
import sys
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from msgspec.structs import replace

from peagle_cli.cli.loading import loading_shown
from peagle_cli.cli.options import PROMPTS_HELP, Device, Drafters, Dtype, Model
from peagle_cli.cli.streams import write
from peagle_cli.engine.lanes import starting_lane
from peagle_cli.engine.protocol import Engine, EngineInfo, EngineSpec
from peagle_cli.errors import BadInputError
from peagle_cli.trace.rounds import PLAIN

if TYPE_CHECKING:
    from peagle_cli.bench.peers import Lane
    from peagle_cli.bench.report import Report
    from peagle_cli.models.progress import OnProgress
    from peagle_cli.trace.rounds import Setting

_TERMINALS = sys.platform != "win32"
"""Whether there are pseudo-terminals to measure the screen on."""


class Part(StrEnum):
    """What can be measured: the engine's speed by method and depth, other programs beside it, steps and prompts, the
    start of the program, and its screen."""

    SPEED = "speed"
    PEERS = "peers"
    STEPS = "steps"
    START_UP = "start-up"
    SCREEN = "screen"


def bench(
    model: Model = None,
    drafter: Drafters = None,
    depth: Annotated[
        list[int] | None, typer.Option(min=1, help="Tokens to draft per step; again for more. Default: 1, 3, 5, 7.")
    ] = None,
    prompts: Annotated[Path | None, typer.Option(help=PROMPTS_HELP)] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Use only so many of the prompts, evenly spread.")] = None,
    tokens: Annotated[int, typer.Option(min=32, help="Tokens a reply may have.")] = 200,
    part: Annotated[list[Part] | None, typer.Option(help="What to measure; again for more. Default: all.")] = None,
    python: Annotated[
        list[Path] | None,
        typer.Option(exists=True, dir_okay=False, help="Another Python, in which to look for other programs too."),
    ] = None,
    dtype: Dtype = None,
    device: Device = None,
    output: Annotated[
        Literal["table", "markdown", "json"],
        typer.Option(help="Tables and a plot, tables for a page, or one JSON object."),
    ] = "table",
    save: Annotated[Path | None, typer.Option(help="Write the figures to this file, too, as JSON.")] = None,
) -> None:
    """Measure how fast peagle is on this machine.

    It takes some minutes, in which the machine should have nothing else to do. Other programs that run the same model
    (llama-cpp-python, transformers, vLLM) are measured on the same prompts where they are installed. One that breaks is
    named, and left out.
    """
    from peagle_cli.cli.bench_report import render
    from peagle_cli.engine.open import open_engine

    if save:
        _check_writable(save)
    parts = part or [each for each in Part if each is not Part.SCREEN or _TERMINALS]
    if Part.SCREEN in parts and not _TERMINALS:
        raise BadInputError("The screen is measured on pseudo-terminals, which Windows has not.", "Leave it out.")
    spec = EngineSpec(model, tuple(drafter or ()), device, dtype)
    asked = _prompts(prompts, limit)
    with loading_shown() as on_progress:
        with contextlib.closing(open_engine(spec, on_progress)) as engine:
            measured = _measure(engine, spec, parts, asked, depth or (1, 3, 5, 7), tokens, python or (), on_progress)
        if Part.START_UP in parts:
            measured = _with_start_up(measured, spec, on_progress)
    if save:
        save.write_text(render(measured, "json"), encoding="utf-8")
    write(render(measured, output))


def _check_writable(file: Path) -> None:
    """Raise `BadInputError` now for a file that cannot be written in the end; what it holds stays until then."""
    try:
        file.open("ab").close()
    except OSError as error:
        raise BadInputError(f"{file} cannot be written: {error.strerror}.", "Choose another with --save.") from error


def _prompts(file: Path | None, limit: int | None) -> list[str]:
    """First turns, of all prompts or of `limit` of them."""
    from peagle_cli.prompts import BUILT_IN, first_turns

    first = first_turns(file or BUILT_IN)
    count = min(limit or len(first), len(first))
    return [first[i * len(first) // count] for i in range(count)]


def _measure(
    engine: Engine,
    spec: EngineSpec,
    parts: Sequence[Part],
    prompts: Sequence[str],
    depths: Sequence[int],
    tokens: int,
    pythons: Sequence[Path],
    on_progress: "OnProgress",
) -> "Report":
    from peagle_cli.bench import speed, steps
    from peagle_cli.bench.report import Report

    info = engine.info
    report = Report(
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        model=info.model,
        machine=info.machine,
        versions=info.versions,
        prompts=len(prompts),
        tokens=tokens,
    )
    if Part.SPEED in parts or Part.PEERS in parts:
        settings = _settings(info, depths) if Part.SPEED in parts else [PLAIN]
        others = list(_peers(engine, spec)) if Part.PEERS in parts else []
        with speed.started(others, (Path(sys.executable), *pythons), on_progress) as (peers, absent):
            test = speed.SpeedTest(engine, settings, peers, prompts, tokens, on_progress)
            speeds, broken = test.measure()
        report = replace(report, speeds=speeds, absent=(*absent, *broken))
    if Part.STEPS in parts:
        usual = [starting_lane(info, method, None) for method in info.methods]
        settings = [(lane.method, lane.depth) for lane in usual]
        report = replace(
            report,
            inside=steps.inside(spec, settings, on_progress),
            turns=tuple(steps.of_a_chat(engine, settings[-1], on_progress)),
            candidates=steps.with_candidates(engine, settings[-1], on_progress),
        )
    if Part.SCREEN in parts:
        from peagle_cli.bench.screen import measure_screen

        report = replace(report, screen=measure_screen(engine, spec, on_progress))
    return report


def _settings(info: EngineInfo, depths: Sequence[int]) -> "list[Setting]":
    """Plain decoding, and every method at every depth that it can."""
    drafting = [(method, depth) for method in info.drafters for depth in depths if depth <= info.max_depths[method]]
    return [PLAIN, *drafting]


def _peers(engine: Engine, spec: EngineSpec) -> "Iterator[Lane]":
    """The programs to look for, each of which runs the engine's model; vLLM with the engine's drafters, too."""
    from peagle_cli.bench.peers import lanes
    from peagle_cli.models import store

    folder = store.target_folder(spec.model)
    drafters = store.drafter_folders(spec.drafters, spec.model)
    context = min(engine.info.context, 4096)
    return lanes(folder, store.gguf_file(spec.model), engine.info.machine.threads, context, drafters)


def _with_start_up(measured: "Report", spec: EngineSpec, on_progress: "OnProgress") -> "Report":
    from peagle_cli.bench import start_up

    named = {"--model": spec.model, "--device": spec.device, "--dtype": spec.dtype}
    opening = [text for name, value in named.items() if value for text in (name, value)]
    opening += [text for folder in spec.drafters for text in ("--drafter", folder)]
    return replace(measured, start_up=start_up.measure(opening, on_progress))
