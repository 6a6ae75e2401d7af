"""Evaluations of drafters as tables."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from peagle_cli.cli.sections import BY_POSITION, Section, shares
from peagle_cli.errors import BadInputError
from peagle_cli.trace.events import METHOD_NAMES
from peagle_cli.trace.lossless import in_common
from peagle_cli.wording import counted, number

if TYPE_CHECKING:
    from peagle_cli.train.evaluate import Evaluation


def evaluation_sections(evaluations: "Sequence[Evaluation]") -> list[Section]:
    """One table for every drafter and set of prompts, a row for every depth, as the first engine measured it; and one
    for every other engine, beside the first.

    Raises `BadInputError` where two engines allowed different lengths of replies.
    """
    engines = list(dict.fromkeys(one.engine for one in evaluations))
    by_engine = {engine: [one for one in evaluations if one.engine == engine] for engine in engines}
    first = by_engine[engines[0]] if engines else []
    tables: dict[str, list[Evaluation]] = {}
    for one in first:
        tables.setdefault(_title(one), []).append(one)
    header = ("depth", "acceptance length", BY_POSITION)
    sections = [Section(title, header, [_row(one) for one in rows]) for title, rows in tables.items()]
    return sections + [_comparison(first, by_engine[other]) for other in engines[1:]]


def _title(one: "Evaluation") -> str:
    how = f"{counted(one.replies, 'prompt')}, replies of up to {one.max_tokens} tokens, {one.precision}"
    return f"{METHOD_NAMES[one.method]} on {one.prompts} ({how})"


def _row(one: "Evaluation") -> tuple[str, ...]:
    return str(one.depth), number(one.mean_acceptance_length, ".2f"), shares(one.per_position_acceptance)


def _comparison(first: "Sequence[Evaluation]", others: "Sequence[Evaluation]") -> Section:
    """Both engines on the prompts that both answered, and on the replies to them as far as these are equal."""
    measured = {(one.method, one.prompts, one.depth): one for one in others}
    mine, theirs = first[0].engine, others[0].engine
    header = ("", "depth", "prompts", mine, theirs, "difference", "equal tokens", "difference there")
    rows = [
        tuple(_compared(one, other))
        for one in first
        if (other := measured.get((one.method, one.prompts, one.depth))) is not None
    ]
    return Section(f"Acceptance length in two engines: {mine} and {theirs}", header, rows)


def _compared(one: "Evaluation", other: "Evaluation") -> "Iterator[str]":
    from peagle_cli.train.evaluate import acceptance_length

    if one.max_tokens != other.max_tokens:
        raise BadInputError(
            f"Replies to {one.prompts} had up to {one.max_tokens} tokens in {one.engine} and up to {other.max_tokens} "
            f"in {other.engine}.",
            "Measure both with the same --max-tokens.",
        )
    both = list(zip(one.by_reply, other.by_reply, strict=False))
    equal = [in_common(mine.ids, theirs.ids) for mine, theirs in both]
    yield from (f"{METHOD_NAMES[one.method]} on {one.prompts}", str(one.depth), str(len(both)))
    lengths = [acceptance_length([n for pair in both for n in pair[i].accepted]) for i in (0, 1)]
    yield from (number(length, ".2f") for length in lengths)
    yield _difference(*lengths)
    yield f"{sum(equal) / sum(len(mine.ids) for mine, _ in both):.0%}"
    there = [
        [n for pair, tokens in zip(both, equal, strict=True) for n in pair[i].accepted_within(tokens)] for i in (0, 1)
    ]
    yield _difference(*map(acceptance_length, there))


def _difference(one: float | None, other: float | None) -> str:
    """How much longer the second is."""
    return number(other / one - 1 if one and other else None, "+.1%")
