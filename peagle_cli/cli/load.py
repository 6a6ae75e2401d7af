"""`peagle compare --concurrency`: servers under load, and what they yield."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from peagle_cli.cli.loading import loading_shown
from peagle_cli.engine.open import VLLM
from peagle_cli.engine.protocol import EngineSpec
from peagle_cli.errors import BadInputError
from peagle_cli.models.progress import OnProgress, Progress
from peagle_cli.trace.events import Method, Sampling

if TYPE_CHECKING:
    from peagle_cli.prompts import Prompt
    from peagle_cli.trace.load import LoadReport

REPEATS = 3
"""Windows of every measurement, where nothing else is asked for: their range is its spread."""


def under_load(
    spec: EngineSpec,
    concurrency: Sequence[int],
    methods: Sequence[Method],
    depths: Sequence[int],
    prompts: "Sequence[Prompt]",
    *,
    baseline: bool,
    repeats: int | None,
    sampling: Sampling,
    max_tokens: int,
) -> "LoadReport":
    """Measure servers of our own under load. Of conversations, the first turn is asked."""
    from peagle_cli.engine.contest import settings_for
    from peagle_cli.engine.vllm.choice import choose
    from peagle_cli.engine.vllm.load import Load, measure

    if spec.engine != VLLM:
        raise BadInputError("Only servers that peagle starts can be measured under load.", "Add --engine vllm.")
    if not all(concurrency):
        raise BadInputError("0 requests at once are none.", "Write --concurrency 1 2 4 8.")
    with loading_shown() as shown:
        on_progress = shown if sys.stderr.isatty() else _Lines(shown).show
        choice = choose(spec, on_progress)
        load = Load(
            settings=settings_for(choice.drafters, methods, depths, baseline),
            concurrency=tuple(concurrency),
            prompts=tuple(prompt.turns[0] for prompt in prompts),
            repeats=repeats or REPEATS,
            sampling=sampling,
            max_tokens=max_tokens,
        )
        return measure(choice, spec, load, on_progress)


class _Lines:
    """For logs: a line where another stage begins, of those that do not change all the time."""

    def __init__(self, also: OnProgress) -> None:
        self._also = also
        self._told = ""

    def show(self, progress: Progress) -> None:
        stage = progress.stage.partition(": ")[0]
        if progress.unit != "bytes" and stage != self._told:
            self._told = stage
            typer.echo(stage, err=True)
        self._also(progress)
