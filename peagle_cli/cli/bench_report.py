"""What `peagle bench` found, as text with plots, Markdown or JSON."""

from collections.abc import Iterator, Sequence
from typing import Literal

from peagle_cli.bench.report import Budget, Inside, Pass, Report, Speed, Spread, StartUp
from peagle_cli.bench.screen_figures import Playing, ScreenFigures
from peagle_cli.cli.sections import Section, as_markdown, as_text, begin_plot, machine_line, plotted
from peagle_cli.text import json_document, printable
from peagle_cli.trace.rounds import name_of
from peagle_cli.wording import NONE, counted

PLOT_SIZE = (76, 16)  # columns and rows


def render(report: Report, output: Literal["table", "markdown", "json"]) -> str:
    """The whole report, safe to print, with a newline at its end."""
    if output == "json":
        return json_document(report)
    head = machine_line(report.model, "torch", report.machine, report.versions)
    if output == "markdown":
        return printable("\n\n".join(["# peagle bench", head, *map(as_markdown, _sections(report))])) + "\n"
    parts = [head, *map(as_text, _sections(report))]
    if report.inside and report.inside.passes:  # none fits a model with hardly any context
        parts.append(_plot_of_passes(report.inside))
    return printable("\n\n".join(parts)) + "\n"


def _sections(report: Report) -> Iterator[Section]:
    if report.speeds:
        yield _speeds(report)
        yield Section("Seconds of a step", ("", *_STEP_HEADER), list(_steps(report.speeds)))
    if report.absent:
        yield Section("Left out", ("", "why"), [(absent.name, absent.reason) for absent in report.absent])
    if report.inside:
        yield _budgets(report.inside)
        yield _passes(report.inside)
        yield _prefills(report.inside)
    if report.turns:
        rows = [
            (str(turn.number), f"{turn.context:,}", f"{turn.processed:,}", _ms(turn.first_token_s))
            for turn in report.turns
        ]
        yield Section("Turns of a chat", ("turn", "tokens", "processed anew", "first token ms"), rows)
    if report.candidates:
        ratio = _spread(report.candidates, 3)
        yield Section(
            "What the inspector costs", ("", "ratio"), [("speed with candidates of every token ÷ without", ratio)]
        )
    if report.start_up:
        yield _start_up(report.start_up)
    if report.screen:
        yield from _screen(report.screen)


def _speeds(report: Report) -> Section:
    rows = [
        (
            speed.name,
            speed.version,
            speed.precision,
            _spread(speed.tokens_per_second, 1),
            _spread(speed.over_plain, 2),
            f"{speed.same_tokens:.0f}",
        )
        for speed in report.speeds
    ]
    title = (
        f"Speed: {counted(report.prompts, 'prompt')}, greedy, up to {report.tokens} tokens each; medians (quartiles). "
        "Same: tokens in common with plain decoding by peagle, before the first other one"
    )
    return Section(title, ("", "version", "precision", "tokens/s", "× plain", "same"), rows)


_STEP_HEADER = ("tokens per step", "draft ms", "target ms", "rest ms")


def _steps(speeds: Sequence[Speed]) -> Iterator[tuple[str, ...]]:
    for speed in speeds:
        if step := speed.step:
            yield (speed.name, f"{step.accepted_length:.2f}", *map(_ms, (step.draft_s, step.verify_s, step.rest_s)))


_PARTS = ("matrices", "attention", "head", "python", "draft", "sampling", "event")


def _budgets(inside: Inside) -> Section:
    rows = [("whole step", *(_ms(budget.total) for budget in inside.budgets))]
    rows += [(part, *(_part(budget, part) for budget in inside.budgets)) for part in _PARTS]
    rows.append(("draft's matrices", *(_ms(budget.draft_matrices) for budget in inside.budgets)))
    title = (
        f"A step's budget in ms, behind {inside.budgets[0].context} tokens. Reading the target's weights once takes "
        f"{_ms(inside.least_pass_s)} ms: {inside.weights / 1e6:.0f} MB at {inside.bytes_per_second / 1e9:.1f} GB/s"
    )
    return Section(title, ("", *(name_of((budget.method, budget.depth)) for budget in inside.budgets)), rows)


def _part(budget: Budget, part: str) -> str:
    seconds: float = getattr(budget, part)
    return f"{_ms(seconds)} {seconds / budget.total:4.0%}" if seconds else NONE


def _passes(inside: Inside) -> Section:
    contexts = list(dict.fromkeys(each.context for each in inside.passes))
    widths = list(dict.fromkeys(each.width for each in inside.passes))
    by_place = {(each.width, each.context): each for each in inside.passes}
    rows = [(str(width), *(_pass(by_place.get((width, context))) for context in contexts)) for width in widths]
    header = ("tokens per pass", *(f"behind {context:,}" for context in contexts))
    return Section("A pass of the target in ms, by its tokens and by context", header, rows)


def _pass(cost: Pass | None) -> str:
    return _ms(cost.seconds) if cost else ""


def _prefills(inside: Inside) -> Section:
    rows = [(f"{each.tokens:,}", _ms(each.target_s), _ms(each.drafter_s)) for each in inside.prefills]
    return Section("Processing a prompt", ("tokens", "target ms", "drafter ms"), rows)


def _start_up(start_up: StartUp) -> Section:
    paint = start_up.first_paint_s
    rows = [
        ("--help is printed", _spread(start_up.help_s, 2)),
        ("the screen is painted", _spread(paint, 2) if paint else NONE),
        ("first token of a model that is here", _spread(start_up.first_token_s, 2)),
    ]
    return Section("Seconds from the start until", ("", "s"), rows)


def _screen(screen: ScreenFigures) -> Iterator[Section]:
    replay, chat = screen.replay, screen.chat
    yield Section(
        f"A replay of {replay.tokens:,} tokens at {replay.tokens_per_s:,.0f} tokens/s, {screen.columns}×{screen.lines}",
        ("", "frames/s", "lag ms, median", "lag ms, 95 %", "CPU ms per frame"),
        [("at its beginning", *_playing(replay.beginning)), ("at its end", *_playing(replay.end))],
    )
    yield Section(
        "The screen besides",
        ("", "figure"),
        [
            ("longest of several jumps", f"{replay.seek_s:.2f} s"),
            ("the part in view laid out anew", f"{replay.relayout_s:.2f} s"),
            ("memory of the process", f"{replay.memory_mb:.0f} MB"),
            ("idle, of a core: replay", f"{replay.idle_percent:.2f} %"),
            ("idle, of a core: chat", f"{chat.idle_percent:.2f} %"),
            ("idle, of a core: paused reply", f"{chat.paused_percent:.2f} %"),
            ("speed on the screen ÷ without one", f"{chat.over_headless:.3f}"),
        ],
    )


def _playing(playing: Playing) -> tuple[str, ...]:
    return (
        f"{playing.frames_per_s:.1f}",
        f"{playing.lag_p50_ms:.1f}",
        f"{playing.lag_p95_ms:.1f}",
        f"{playing.cpu_ms_per_frame:.1f}",
    )


def _plot_of_passes(inside: Inside) -> str:
    """What a pass costs by the tokens in it, behind the shortest context."""
    import plotext

    nearest = min(each.context for each in inside.passes)
    passes = [each for each in inside.passes if each.context == nearest]
    begin_plot(f"ms per pass of the target, by its tokens, behind {nearest} tokens", *PLOT_SIZE)
    widths = [each.width for each in passes]
    plotext.plot(widths, [1e3 * each.seconds for each in passes], marker="braille")
    plotext.xticks(widths)
    plotext.ylim(0, None)
    return plotted()


def _spread(spread: Spread, digits: int) -> str:
    return f"{spread.median:.{digits}f} ({spread.low:.{digits}f}–{spread.high:.{digits}f})"


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.2f}" if seconds < 0.1 else f"{1e3 * seconds:.0f}"
