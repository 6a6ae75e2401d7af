"""What was measured, as it is written to JSON and as people read it."""

import statistics
from collections.abc import Iterator, Sequence

import msgspec

from peagle_cli.trace.events import METHOD_NAMES, Machine, Method


class Spread(msgspec.Struct, frozen=True):
    """The median of several measurements, and the quartiles on either side."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """The spread of `values`, at least one."""
        if len(values) == 1:
            return cls(values[0], values[0], values[0])
        low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
        return cls(middle, low, high)


class Step(msgspec.Struct, frozen=True):
    """Where the time of a step goes, in seconds: the drafter, the target, and all else until its events are here. The
    medians of replies' means; `accepted_length` are tokens per step."""

    accepted_length: float
    draft_s: float
    verify_s: float
    rest_s: float


class Speed(msgspec.Struct, frozen=True):
    """A program's tokens per second on the prompts, from the request to the last token, and its ratio to plain decoding
    by peagle, prompt by prompt. `step` is known of peagle alone."""

    program: str
    version: str
    precision: str
    method: Method
    depth: int
    tokens_per_second: Spread
    over_plain: Spread
    step: Step | None = None


class AtContext(msgspec.Struct, frozen=True):
    """Seconds behind `tokens` of context: for processing it, and per step without a draft and with one."""

    tokens: int
    prefill_s: float
    plain_s: float
    draft_s: float
    verify_s: float


class Turn(msgspec.Struct, frozen=True):
    """A turn of a conversation: its whole context, the tokens of it that had to be processed, and the seconds until the
    reply's first token."""

    number: int
    context: int
    processed: int
    first_token_s: float


class StartUp(msgspec.Struct, frozen=True):
    """Seconds until the help is printed, the screen is painted, and a model that is here has said its first token."""

    help_s: Spread
    first_paint_s: Spread | None
    first_token_s: Spread


class Report(msgspec.Struct, frozen=True):
    """All that was asked for; parts that were not are empty."""

    created: str
    model: str
    machine: Machine
    versions: dict[str, str]
    prompts: int
    tokens: int
    speeds: tuple[Speed, ...] = ()
    absent: tuple[str, ...] = ()
    contexts: tuple[AtContext, ...] = ()
    context_depth: int = 0
    turns: tuple[Turn, ...] = ()
    candidates: Spread | None = None
    start_up: StartUp | None = None


def lines(report: Report) -> Iterator[str]:
    """The report for people, as tables in Markdown."""
    machine = report.machine
    yield f"{report.model} on {machine.name} ({machine.device}, {machine.threads} threads), {machine.precision}; " + (
        ", ".join(f"{name} {version}" for name, version in report.versions.items())
    )
    if report.speeds:
        yield from (
            "",
            f"Greedy, {report.prompts} prompts, up to {report.tokens} tokens each; medians (quartiles).",
            "",
        )
        yield from _table(("", "tokens/s", "× plain", "per step", "draft ms", "target ms", "rest ms"), _speeds(report))
        if report.absent:
            yield from ("", f"Not installed: {', '.join(report.absent)}.")
    if report.contexts:
        yield from ("", *_table(("context", "prefill ms", "plain ms", "draft ms", "target ms"), _contexts(report)))
        yield from ("", f"Plain steps, and those at depth {report.context_depth}.")
    if report.turns:
        yield from ("", *_table(("turn", "context", "processed", "first token ms"), _turns(report)))
    if report.candidates:
        yield from ("", f"With candidates for inspection: {_spread(report.candidates, 3)} × the speed without.")
    if report.start_up:
        yield from ("", _start_up(report.start_up))


def _speeds(report: Report) -> Iterator[tuple[str, ...]]:
    for speed in report.speeds:
        how = METHOD_NAMES[speed.method] + (f" {speed.depth}" if speed.depth else "")
        step: tuple[str, ...] = ("",) * 4
        if speed.step:
            times = (speed.step.draft_s, speed.step.verify_s, speed.step.rest_s)
            step = (f"{speed.step.accepted_length:.2f}", *(f"{1e3 * seconds:.2f}" for seconds in times))
        name = f"{speed.program} {speed.version}, {speed.precision}: {how}"
        yield name, _spread(speed.tokens_per_second, 1), _spread(speed.over_plain, 2), *step


def _contexts(report: Report) -> Iterator[tuple[str, ...]]:
    for at in report.contexts:
        times = (at.prefill_s, at.plain_s, at.draft_s, at.verify_s)
        yield f"{at.tokens:,}", *(f"{1e3 * seconds:.1f}" for seconds in times)


def _turns(report: Report) -> Iterator[tuple[str, ...]]:
    for turn in report.turns:
        yield str(turn.number), f"{turn.context:,}", f"{turn.processed:,}", f"{1e3 * turn.first_token_s:.0f}"


def _start_up(start_up: StartUp) -> str:
    parts = [f"help {_spread(start_up.help_s, 2)} s", f"first token {_spread(start_up.first_token_s, 2)} s"]
    if start_up.first_paint_s:
        parts.insert(1, f"first paint {_spread(start_up.first_paint_s, 2)} s")
    return f"Start-up: {', '.join(parts)}."


def _spread(spread: Spread, digits: int) -> str:
    return f"{spread.median:.{digits}f} ({spread.low:.{digits}f}–{spread.high:.{digits}f})"


def _table(header: Sequence[str], rows: Iterator[tuple[str, ...]]) -> Iterator[str]:
    cells = [tuple(header), *rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    cells.insert(1, tuple("-" * width for width in widths))
    for row in cells:
        yield f"| {' | '.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))} |"
