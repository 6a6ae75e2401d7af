"""`peagle compare`: the same prompts in several lanes, and which of them to use."""

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from peagle_cli.cli import terminal
from peagle_cli.cli.engine_flags import EngineCommand, server_flags
from peagle_cli.cli.loading import loading_shown
from peagle_cli.cli.options import PROMPTS_HELP, Device, Drafters, Dtype, EngineName, Model, Record, Theme, check_theme
from peagle_cli.cli.streams import write, write_event
from peagle_cli.engine.protocol import EngineInfo, EngineSpec, LaneSetting
from peagle_cli.engine.validate import check_lane, check_sampling
from peagle_cli.errors import BadInputError, PeagleError
from peagle_cli.trace.events import METHOD_NAMES, Method, Sampling

if TYPE_CHECKING:
    from collections.abc import Callable

    from peagle_cli.engine.contest import Contest
    from peagle_cli.trace.comparison import Report
    from peagle_cli.trace.profile import Profile
    from peagle_cli.trace.rounds import Round

Output = Literal["table", "json", "csv", "markdown", "jsonl"]
"""A report for people, for programs, for a spreadsheet, for a page; or every event as it happens."""


_SEVERAL = ("--depth", "--concurrency")


class CompareCommand(EngineCommand):
    """Lets `--depth` and `--concurrency` take several numbers at once. A context is `Any` because Typer keeps its class
    to itself."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Join the numbers that follow such an option into one value."""
        return super().parse_args(ctx, join_numbers(args))


def compare(
    ctx: typer.Context,
    prompt: Annotated[
        str | None,
        typer.Argument(help="What to ask. Default: a set of code, chat and list prompts.", show_default=False),
    ] = None,
    depth: Annotated[
        list[str] | None,
        typer.Option(metavar="N...", help="Depths to compare: 3 7, or 3,7, or the option again. Default: 3 7."),
    ] = None,
    concurrency: Annotated[
        list[str] | None,
        typer.Option(
            metavar="N...",
            help="With --engine vllm: measure servers with so many requests at once, such as 1 2 4 8.",
            show_default=False,
        ),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[none|eagle3|peagle]", help="Method to compare; again for another. Default: all with a drafter."
        ),
    ] = None,
    prompts: Annotated[Path | None, typer.Option(help=PROMPTS_HELP)] = None,
    max_tokens: Annotated[int, typer.Option(min=2, help="Tokens a reply may have.")] = 128,
    repeat: Annotated[
        int | None,
        typer.Option(min=1, help="Ask every prompt so many times. Default: 1, under load 3.", show_default=False),
    ] = None,
    temperature: Annotated[float, typer.Option(min=0, help="0 always takes the likeliest token.")] = 0.0,
    seed: Annotated[int | None, typer.Option(min=0, help="Makes sampling repeatable.", show_default=False)] = None,
    baseline: Annotated[bool, typer.Option("--baseline/--no-baseline", help="Run plain decoding, too.")] = True,
    simulate: Annotated[
        str | None,
        typer.Option(
            metavar="PROFILE", help="Tell what it would be on the machine of a profile: a file, or a name that ships."
        ),
    ] = None,
    output: Annotated[
        Output | None,
        typer.Option(help="A report, or the events of all replies as JSON lines. Default in a pipe: table."),
    ] = None,
    engine: EngineName = "torch",
    model: Model = None,
    drafter: Drafters = None,
    dtype: Dtype = None,
    device: Device = None,
    theme: Theme = None,
    record: Record = True,
) -> None:
    """Compare drafters and depths on the same prompts.

    Every method runs at every depth, and plain decoding as the baseline. The lanes take turns step by step, each on its
    own clock. At temperature 0 their tokens are held against plain decoding; a lossy engine means exit code 1. On a
    terminal this is a race to watch, and the report is printed behind it.

    With --concurrency, vLLM servers are started one after the other and kept under load: the report tells their speed,
    acceptance and the ratio of P-EAGLE to EAGLE-3 by requests at once and depth.
    """
    from peagle_cli.cli import load_report
    from peagle_cli.cli.compare_report import render
    from peagle_cli.cli.load import under_load
    from peagle_cli.engine.contest import DEPTHS, Contest, settings_for
    from peagle_cli.profiles import read_profile
    from peagle_cli.prompts import BUILT_IN, Prompt, read_prompts

    check_theme(theme)
    if prompt is not None and prompts is not None:
        raise BadInputError("There is a prompt and a file of prompts.", "Give one of the two.")
    if simulate is not None and output == "jsonl":
        raise BadInputError("Events are what happened, and nothing is simulated in them.", "Choose another --output.")
    asked = read_prompts(prompts or BUILT_IN) if prompt is None else (Prompt((prompt,)),)
    profile = None if simulate is None else read_profile(simulate)
    depths = parse_numbers(depth or [], "depth") or DEPTHS
    methods = parse_methods(method or [])
    sampling = Sampling(temperature=temperature, seed=seed)
    check_sampling(sampling)
    spec = EngineSpec(
        model,
        tuple(drafter or ()),
        device,
        dtype,
        engine=engine,
        depth=max(depths),
        flags=server_flags(ctx),
    )

    if concurrency:
        if output == "jsonl" or simulate is not None:
            raise BadInputError("Under load there are figures only, and measured ones.", "Leave that option out.")
        loaded = under_load(
            spec,
            parse_numbers(concurrency, "concurrency"),
            methods,
            depths,
            asked,
            baseline=baseline,
            repeats=repeat,
            sampling=sampling,
            max_tokens=max_tokens,
        )
        write(load_report.render(loaded, output or "table"))
        return

    def contest_for(info: EngineInfo) -> Contest:
        settings = settings_for(info.drafters, methods, depths, baseline)
        for setting in settings:
            check_lane(LaneSetting("", *setting), info)
        if profile:
            profile.check_methods(method for method, _ in settings)
        return Contest(settings, asked, repeat or 1, sampling, max_tokens)

    report: Report | None
    if output is None and profile is None and terminal.is_there():
        terminal.check("--output table")
        from peagle_cli.tui.app import run_race

        report = run_race(spec, contest_for, theme, record)
    else:
        report = _run(spec, contest_for, profile, record=record, as_events=output == "jsonl")
    if report is None:
        return
    if output != "jsonl":
        write(render(report, output or "table"))
    if report.lossless.verdict == "NOT LOSSLESS":
        raise PeagleError(report.lossless.sentence, "Figures of a lossy engine mean nothing: it must be mended first.")


def _run(
    spec: EngineSpec,
    contest_for: "Callable[[EngineInfo], Contest]",
    profile: "Profile | None",
    *,
    record: bool,
    as_events: bool,
) -> "Report":
    """Run the contest without a screen; writes its events if that is wanted."""
    from peagle_cli.cli.recorded import recorded
    from peagle_cli.cli.rounds_shown import rounds_shown
    from peagle_cli.engine.contest import play, sweep
    from peagle_cli.engine.open import open_engine
    from peagle_cli.trace import comparison

    with loading_shown() as on_progress:
        opened = open_engine(spec, on_progress)
    engine = recorded(opened, record)
    rounds: list[Round] = []
    with contextlib.closing(engine):
        contest = contest_for(engine.info)
        with rounds_shown(contest.size) as show:
            steps = list(sweep(opened, contest))
            for current, event in play(engine, contest):
                if not rounds or rounds[-1] is not current:
                    show(len(rounds))
                    rounds.append(current)
                if as_events:
                    write_event(event)
    return comparison.compare(rounds, contest.repeats, engine.info.footprints, steps, profile)


def join_numbers(args: list[str]) -> list[str]:
    """`--depth 3 7 PROMPT` as `--depth 3,7 PROMPT`, and `--concurrency` likewise. What stands behind `--` is left
    alone."""
    joined: list[str] = []
    end = args.index("--") if "--" in args else len(args)
    for arg in args[:end]:
        if len(joined) > 1 and joined[-2] in _SEVERAL and _are_numbers(joined[-1]) and _are_numbers(arg):
            joined[-1] += f",{arg}"
        else:
            joined.append(arg)
    return joined + args[end:]


def parse_numbers(values: list[str], option: str) -> tuple[int, ...]:
    """All numbers in `values`, each one number or several with commas between. Raises `BadInputError` for others."""
    for value in values:
        if not _are_numbers(value):
            raise BadInputError(f"{value!r} is no {option}.", f"Write --{option} 3 7, or --{option} 3,7.")
    return tuple(dict.fromkeys(int(part) for value in values for part in value.split(",")))


def parse_methods(values: list[str]) -> tuple[Method, ...]:
    """All methods in `values`, each one name or several with commas between. Raises `BadInputError` for others."""
    names = [name for value in values for name in value.split(",")]
    for name in names:
        if name not in METHOD_NAMES:
            raise BadInputError(f"{name!r} is no method.", f"Choose from {', '.join(METHOD_NAMES)}.")
    return tuple(method for method in METHOD_NAMES if method in names)


def _are_numbers(text: str) -> bool:
    return all(part.isdecimal() and part.isascii() for part in text.split(","))
