"""What others have published on a target, as sections of a report: beside what was measured, not mixed with it."""

from collections.abc import Iterator

from peagle_cli.cli.sections import Section
from peagle_cli.models.published import Published, published_on
from peagle_cli.trace.events import METHOD_NAMES, Method
from peagle_cli.trace.rounds import name_of
from peagle_cli.wording import number


def published_sections(model: str) -> Iterator[Section]:
    """Of the target with this title: none for most."""
    for published in published_on(model):
        where = f"published by {published.source}, on {published.hardware}"
        if published.ratios:
            yield _ratios(published, where)
        if published.tokens_per_second:
            yield _speeds(published, where)
        yield _acceptance(published, where)


def _ratios(published: Published, where: str) -> Section:
    loads = sorted({load for ratios in published.ratios.values() for load in ratios})
    depths = published.at_depths
    rows = [
        (benchmark, *(number(ratios.get(load), ".2f") for load in loads))
        for benchmark, ratios in published.ratios.items()
    ]
    title = f"P-EAGLE {depths['peagle']} ÷ EAGLE-3 {depths['eagle3']} by requests at once, {where}"
    return Section(title, ("benchmark", *map(str, loads)), rows)


def _speeds(published: Published, where: str) -> Section:
    methods: tuple[Method, ...] = ("none", "eagle3", "peagle")
    rows = [
        (benchmark, *(number(speeds.get(method), ".0f") for method in methods))
        for benchmark, speeds in published.tokens_per_second.items()
    ]
    header = ("benchmark", *(_at(published, method) for method in methods))
    return Section(f"Tokens/s, one request at a time, {where}", header, rows)


def _acceptance(published: Published, where: str) -> Section:
    methods: tuple[Method, ...] = ("eagle3", "peagle")
    columns = [
        (method, depth)
        for method in methods
        for depth in sorted(
            {depth for lengths in published.acceptance_lengths.values() for depth in lengths.get(method, ())}
        )
    ]
    rows = [
        (benchmark, *(number(lengths.get(method, {}).get(depth), ".2f") for method, depth in columns))
        for benchmark, lengths in published.acceptance_lengths.items()
    ]
    header = ("benchmark", *map(name_of, columns))
    return Section(f"Acceptance length, {where}", header, rows)


def _at(published: Published, method: Method) -> str:
    depth = published.at_depths.get(method)
    return METHOD_NAMES[method] if depth is None else name_of((method, depth))
