"""The report of a server under load: a table, JSON, CSV, Markdown, and a plot in characters."""

from collections.abc import Callable, Iterator, Sequence
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
from peagle_cli.trace.load import LoadPoint, LoadRatio, LoadReport
from peagle_cli.wording import counted, number

PLOT_SIZE = (76, 16)  # columns and rows


def render(report: LoadReport, output: Literal["table", "markdown", "csv", "json"]) -> str:
    """The whole report, safe to print, with a newline at its end."""
    match output:
        case "json":
            return json_document({**msgspec.structs.asdict(report), "published": published_on(report.model)})
        case "csv":
            return printable(_as_csv(report))
        case "markdown":
            parts = ["# peagle compare --concurrency", *_head(report), *map(as_markdown, _sections(report))]
            return printable("\n\n".join(parts)) + "\n"
        case "table":
            parts = ["\n".join(_head(report)), *map(as_text, _sections(report)), _plot(report)]
            return printable("\n\n".join(part for part in parts if part)) + "\n"


def _head(report: LoadReport) -> tuple[str, str]:
    return (
        machine_line(report.model, report.engine, report.machine, report.versions),
        f"{counted(report.prompts, 'prompt')}, {report.repeats} windows each, {report.max_tokens} tokens at most, "
        f"temperature {report.sampling.temperature:g}; one server at a time, started for its depth",
    )


def _sections(report: LoadReport) -> Iterator[Section]:
    loads = list(dict.fromkeys(point.concurrency for point in report.points))
    yield _speeds(report, loads)
    if any(point.speedup is not None and point.method != "none" for point in report.points):
        yield _cells(report, loads, "× plain decoding under the same load", lambda point: number(point.speedup, ".2f"))
    yield _cells(
        report, loads, "Acceptance length", lambda point: number(point.mean_acceptance_length, ".2f"), plain=False
    )
    if report.ratios or report.best_ratios:
        yield _ratios(report, loads)
    yield from published_sections(report.model)


def _speeds(report: LoadReport, loads: Sequence[int]) -> Section:
    title = "Tokens/s of the server, all requests together, by requests at once (the median, and the range of windows)"
    return _cells(report, loads, title, _speed)


def _speed(point: LoadPoint) -> str:
    low, high = point.tokens_per_second_range
    return f"{point.tokens_per_second:.1f}" + (f" ({low:.1f}–{high:.1f})" if point.windows > 1 else "")


def _cells(
    report: LoadReport, loads: Sequence[int], title: str, cell: Callable[[LoadPoint], str], *, plain: bool = True
) -> Section:
    """A row for each method and depth, a column for each load."""
    rows: dict[str, dict[int, str]] = {}
    for point in report.points:
        if plain or point.method != "none":
            rows.setdefault(point.name, {})[point.concurrency] = cell(point)
    return Section(
        title,
        ("at once", *map(str, loads)),
        [(name, *(cells.get(load, "") for load in loads)) for name, cells in rows.items()],
    )


def _ratios(report: LoadReport, loads: Sequence[int]) -> Section:
    rows = []
    for depth in dict.fromkeys(ratio.peagle_depth for ratio in report.ratios):
        by_load = {ratio.concurrency: ratio for ratio in report.ratios if ratio.peagle_depth == depth}
        rows.append((f"both at depth {depth}", *(_ratio(by_load.get(load)) for load in loads)))
    best = {ratio.concurrency: ratio for ratio in report.best_ratios}
    rows.append(("each at its fastest", *(_ratio(best.get(load)) for load in loads)))
    rows.append(
        ("  their depths", *(f"{b.peagle_depth} ÷ {b.eagle3_depth}" if (b := best.get(load)) else "" for load in loads))
    )
    return Section(
        "P-EAGLE ÷ EAGLE-3 (the ratio of medians, and the widest range)", ("at once", *map(str, loads)), rows
    )


def _ratio(ratio: LoadRatio | None) -> str:
    if ratio is None:
        return ""
    low, high = ratio.range
    return f"{ratio.ratio:.2f}" + (f" ({low:.2f}–{high:.2f})" if low < high else "")


def _as_csv(report: LoadReport) -> str:
    deepest = max(point.depth for point in report.points)
    machine = machine_cells(report.model, report.engine, report.machine, report.versions)
    return as_csv([{**_csv_row(point, deepest), **machine} for point in report.points])


def _csv_row(point: LoadPoint, deepest: int) -> dict[str, object]:
    cells = msgspec.to_builtins(point)
    rates, (least, greatest) = cells.pop("per_position_acceptance"), cells.pop("tokens_per_second_range")
    cells |= {"tokens_per_second_least": least, "tokens_per_second_greatest": greatest}
    cells |= {f"accepted_up_to_{i + 1}": rates[i] if i < len(rates) else "" for i in range(deepest)}
    return dict(cells)


def _plot(report: LoadReport) -> str:
    """Tokens/s by load: a curve for each method and depth."""
    import plotext

    loads = list(dict.fromkeys(point.concurrency for point in report.points))
    if len(loads) < 2:
        return ""
    begin_plot("tokens/s by requests at once", *PLOT_SIZE)
    names = list(dict.fromkeys(point.name for point in report.points))
    for letter, name in zip("abcdefghijklmnopqrstuvwxyz", names, strict=False):
        points = [point for point in report.points if point.name == name]
        x, y = [point.concurrency for point in points], [point.tokens_per_second for point in points]
        plotext.plot(x, y, marker="braille")
        plotext.scatter(x, y, marker=letter, label=name)
    plotext.xticks(loads)
    return plotted()
