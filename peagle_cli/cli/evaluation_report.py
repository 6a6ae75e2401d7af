"""Evaluations of drafters as tables."""

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from peagle_cli.cli.sections import BY_POSITION, Section, shares
from peagle_cli.trace.events import METHOD_NAMES
from peagle_cli.wording import number

if TYPE_CHECKING:
    from peagle_cli.train.evaluate import Evaluation


def evaluation_sections(evaluations: "Sequence[Evaluation]") -> list[Section]:
    """One table for every drafter and set of prompts, a row for every depth; where two engines measured the same, the
    second's acceptance lengths beside the first's, with the difference."""
    engines = list(dict.fromkeys(one.engine for one in evaluations))
    first = [one for one in evaluations if one.engine == engines[0]]
    others = {(one.method, one.prompts, one.depth): one for one in evaluations if one.engine != engines[0]}
    sections = []
    for (method, prompts), group in groupby(first, key=lambda one: (one.method, one.prompts)):
        rows = list(group)
        pairs = [(one, others.get((method, prompts, one.depth))) for one in rows]
        header: tuple[str, ...] = ("depth", "acceptance length")
        if any(other for _, other in pairs):
            header += (f"in {engines[1]}", "difference")
        title = f"{METHOD_NAMES[method]} on {prompts} ({rows[0].replies} prompts)"
        cells = [_row(one, other, len(header)) for one, other in pairs]
        sections.append(Section(title, (*header, BY_POSITION), cells))
    return sections


def _row(one: "Evaluation", other: "Evaluation | None", width: int) -> tuple[str, ...]:
    mine = one.mean_acceptance_length
    cells = [str(one.depth), number(mine, ".2f")]
    if width > len(cells):
        theirs = other.mean_acceptance_length if other else None
        cells += [number(theirs, ".2f"), number(theirs / mine - 1 if theirs and mine else None, "+.1%")]
    return (*cells, shares(one.per_position_acceptance))
