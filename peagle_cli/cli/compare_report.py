"""A comparison's report as text, Markdown, CSV or JSON."""

from collections.abc import Iterator
from typing import Literal

import msgspec

from peagle_cli.cli.published_report import published_sections
from peagle_cli.cli.sections import (
    Section,
    as_csv,
    as_markdown,
    as_text,
    begin_plot,
    machine_cells,
    machine_line,
    plotted,
)
from peagle_cli.models.published import published_on
from peagle_cli.text import json_document, printable
from peagle_cli.trace.advice import Advice, Check, Prediction
from peagle_cli.trace.comparison import LaneReport, Memory, Report
from peagle_cli.trace.events import METHOD_NAMES
from peagle_cli.trace.lossless import Divergence, Opinion
from peagle_cli.trace.rounds import name_of
from peagle_cli.wording import NONE, counted, number

PLOT_SIZE = (76, 18)  # columns and rows


_NESTED = ("per_position_acceptance", "acceptance_histogram", "tokens_per_second_quartiles", "categories", "memory")
"""What of a lane's report is not one cell of a table."""


def render(report: Report, output: Literal["table", "markdown", "csv", "json"]) -> str:
    """The whole report, safe to print, with a newline at its end."""
    match output:
        case "json":
            published = published_on(report.model)
            return json_document({**msgspec.structs.asdict(report), "published": published} if published else report)
        case "csv":
            return printable(_as_csv(report))
        case "markdown":
            return printable(_as_markdown(report)) + "\n"
        case "table":
            return printable(_as_table(report)) + "\n"


def _conditions(report: Report) -> str:
    times = f", {report.repeats} times each" if report.repeats > 1 else ""
    sampling = f"temperature {report.sampling.temperature:g}"
    return f"{counted(report.prompts, 'prompt')}{times}, {report.max_tokens} tokens at most, {sampling}"


def _head(report: Report) -> tuple[str, str, str]:
    machine = machine_line(report.model, report.engine, report.machine, report.versions)
    return machine, _conditions(report), _simulated_line(report)


def _simulated_line(report: Report) -> str:
    """Whose times they are, where they are not the machine's own."""
    if not (simulated := report.simulated):
        return ""
    machine = simulated.machine
    return (
        f"SIMULATED: tokens and acceptance are of this run; all times and speeds are those of {simulated.model} on "
        f"{machine.device} ({machine.name}, {counted(machine.threads, 'thread')}, {machine.precision}), "
        f"profiled {simulated.created}"
    )


def _sections(report: Report) -> Iterator[Section]:
    yield _speeds(report)
    yield _positions(report)
    if any(lane.categories for lane in report.lanes):
        yield _categories(report)
    if any(lane.memory for lane in report.lanes):
        yield _memory(report)
    if report.advice:
        yield _predictions(report.advice)
        yield _checks(report.advice, "simulated" if report.simulated else "measured")
    yield from published_sections(report.model)


def _speeds(report: Report) -> Section:
    ratios = ("× plain", "× EAGLE-3")
    header = ("lane", "tokens/s", "quartiles", *ratios, "first token", "per step", "accepted", "draft", "verify")
    title = "Simulated speeds and times" if report.simulated else ""
    return Section(title, header, [_speed_row(lane) for lane in report.lanes])


def _speed_row(lane: LaneReport) -> tuple[str, ...]:
    quartiles = lane.tokens_per_second_quartiles
    return (
        lane.name,
        number(lane.tokens_per_second, ".1f"),
        f"{quartiles[0]:.1f}–{quartiles[1]:.1f}" if quartiles else NONE,
        number(lane.speedup, ".2f"),
        number(lane.speedup_over_eagle3, ".2f"),
        _milliseconds(lane.time_to_first_token_s),
        number(lane.mean_acceptance_length, ".2f"),
        number(lane.draft_acceptance_rate, ".0%"),
        _milliseconds(lane.mean_draft_s if lane.drafts else None),
        _milliseconds(lane.mean_verify_s),
    )


def _positions(report: Report) -> Section:
    lanes = [lane for lane in report.lanes if lane.drafts]
    deepest = max((lane.depth for lane in lanes), default=0)
    header = ("accepted up to", *(str(position) for position in range(1, deepest + 1)))
    rows = [
        (lane.name, *(f"{rate:.0%}" for rate in lane.per_position_acceptance), *[""] * (deepest - lane.depth))
        for lane in lanes
    ]
    return Section("Share of drafts accepted up to each position", header, rows)


def _categories(report: Report) -> Section:
    names = list(report.lanes[0].categories)
    rows = []
    for lane in report.lanes:
        cells = []
        for name in names:
            figures = lane.categories[name]
            cells.append(number(figures.tokens_per_second, ".1f"))
            cells.append(number(figures.speedup, ".2f"))
        rows.append((lane.name, *cells))
    header = ("lane", *(cell for name in names for cell in (name or "other", "× plain")))
    return Section(f"{'Simulated tokens' if report.simulated else 'Tokens'}/s by category", header, rows)


def _memory(report: Report) -> Section:
    header = ("lane", "target", "its cache", "drafter", "its cache", "attention per draft")
    rows = [(lane.name, *_memory_cells(lane.memory)) for lane in report.lanes if lane.memory]
    return Section("Memory, and the work of a draft in the drafter's attention", header, rows)


def _memory_cells(memory: Memory) -> tuple[str, ...]:
    sizes = (memory.target_weights, memory.target_kv_cache, memory.drafter_weights, memory.drafter_kv_cache)
    work = f"{memory.draft_attention_mflop:.2f} MFLOP" if memory.draft_attention_mflop else NONE
    return (*(f"{size / 1e6:.1f} MB" if size else NONE for size in sizes), work)


def _predictions(advice: Advice) -> Section:
    by_setting = {(p.method, p.depth): p for p in advice.predictions}
    methods = list(dict.fromkeys(p.method for p in advice.predictions if p.method != "none"))
    deepest = max((p.depth for p in advice.predictions), default=0)
    rows = [
        (
            METHOD_NAMES[method],
            _prediction(by_setting["none", 0], advice),
            *(_prediction(by_setting.get((method, depth)), advice) for depth in range(1, deepest + 1)),
        )
        for method in methods
    ]
    header = ("depth", "0", *(str(depth) for depth in range(1, deepest + 1)))
    return Section("Predicted tokens/s at every depth (* the best, ~ from extrapolated acceptance)", header, rows)


def _prediction(prediction: Prediction | None, advice: Advice) -> str:
    if prediction is None:
        return ""
    mark = "*" if prediction == advice.best else ""
    return f"{mark}{'~' if prediction.extrapolated else ''}{prediction.tokens_per_second:.0f}"


def _checks(advice: Advice, measured: str) -> Section:
    rows = [
        (
            name_of((check.method, check.depth)),
            f"{check.predicted_tokens_per_second:.1f}",
            f"{check.measured_tokens_per_second:.1f}",
            f"{check.error:+.1%}",
            _basis(check),
        )
        for check in advice.checks
    ]
    header = ("lane", "predicted", measured, "error", "predicted from")
    return Section("Predictions against all replies together", header, rows)


def _basis(check: Check) -> str:
    if check.method == "none":
        return "costs alone"
    return "acceptance at other depths" if check.blind else "its own acceptance"


def _findings(report: Report) -> Iterator[str]:
    """The sentences of a report, its verdict first."""
    yield report.verdict
    yield from report.notes
    if report.advice:
        yield f"Advice. {report.advice.sentence}"
        for category, advice in report.advice.categories.items():
            yield f"On {category or 'other'} prompts. {advice.sentence}"
    for check in report.lossless.lanes:
        name = name_of((check.method, check.depth))
        if check.first_tie:
            yield f"{name}, {counted(check.ties, 'rounding tie')}; the first: {_divergence(check.first_tie)}"
        if check.first_lossy:
            yield f"{name}, {check.lossy} lossy; the first: {_divergence(check.first_lossy)}"


def _divergence(divergence: Divergence) -> str:
    opinions = [
        f"{place} {_logits(opinion)}"
        for place, opinion in (("plain decoding saw", divergence.in_plain), ("the lane saw", divergence.in_lane))
        if opinion
    ]
    return "; ".join([f"token {divergence.position}, {divergence.reason}", *opinions]) + "."


def _logits(opinion: Opinion) -> str:
    return f"{number(opinion.plain_token, '.3f')} and {number(opinion.lane_token, '.3f')}"


def _as_table(report: Report) -> str:
    parts = ["\n".join(line for line in _head(report) if line)]
    parts += map(as_text, _sections(report))
    if report.advice:
        parts.append("\n".join(("The predictions assume:", *(f"- {each}" for each in report.advice.assumptions))))
    parts.append(_plot(report))
    parts.append("\n".join(_findings(report)))
    return "\n\n".join(part for part in parts if part)


def _as_markdown(report: Report) -> str:
    parts = ["# peagle compare", *(line for line in _head(report) if line)]
    parts.append("\n".join(f"- {finding}" for finding in _findings(report)))
    parts += map(as_markdown, _sections(report))
    if report.advice:
        parts.append("\n".join(("The predictions assume:\n", *(f"- {each}" for each in report.advice.assumptions))))
    return "\n\n".join(parts)


def _as_csv(report: Report) -> str:
    positions = max((lane.depth for lane in report.lanes), default=0)
    conditions = {
        "lossless": report.lossless.verdict,
        "simulated_on": report.simulated.machine.name if report.simulated else "",
        **machine_cells(report.model, report.engine, report.machine, report.versions),
    }
    return as_csv([{**_csv_row(lane, positions), **conditions} for lane in report.lanes])


def _csv_row(lane: LaneReport, positions: int) -> dict[str, object]:
    rates, quartiles = lane.per_position_acceptance, lane.tokens_per_second_quartiles or ("", "")
    return {
        **{name: value for name, value in msgspec.to_builtins(lane).items() if name not in _NESTED},
        "tokens_per_second_quartile_1": quartiles[0],
        "tokens_per_second_quartile_3": quartiles[1],
        **{f"accepted_up_to_{i + 1}": rates[i] if i < len(rates) else "" for i in range(positions)},
        **(msgspec.to_builtins(lane.memory) if lane.memory else dict.fromkeys(Memory.__struct_fields__, "")),
    }


def _plot(report: Report) -> str:
    """Speed by depth: the predictions as curves, the measured lanes as letters."""
    import plotext

    advice = report.advice
    if advice is None:
        return ""
    methods = [method for method in METHOD_NAMES if any(p.method == method for p in advice.predictions[1:])]
    if not methods:
        return ""
    how = "simulated" if report.simulated else "measured"
    begin_plot(f"tokens/s by depth: predicted (curves) and {how} (letters)", *PLOT_SIZE)
    for method in methods:
        curve = [p for p in advice.predictions if p.method in ("none", method)]
        letter = METHOD_NAMES[method][0]
        plotext.plot([p.depth for p in curve], [p.tokens_per_second for p in curve], marker="braille")
        measured = [check for check in advice.checks if check.method == method]
        plotext.scatter(
            [check.depth for check in measured],
            [check.measured_tokens_per_second for check in measured],
            marker=letter,
            label=f"{METHOD_NAMES[method]}, {how}",
        )
    plotext.xticks([p.depth for p in curve])
    return plotted()


def _milliseconds(seconds: float | None) -> str:
    return NONE if seconds is None else f"{seconds * 1e3:.1f} ms"
