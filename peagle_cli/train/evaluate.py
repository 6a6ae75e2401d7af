"""How good a drafter is on prompts: acceptance through our engine, greedily, with vLLM's definitions."""

from collections.abc import Callable, Sequence

import msgspec

from peagle_cli.engine.protocol import Engine, LaneSetting, Message, Request
from peagle_cli.trace.events import Failed, Method, Sampling
from peagle_cli.trace.metrics import Metrics


class Evaluation(msgspec.Struct, frozen=True):
    """All prompts at one depth. Lengths and rates are as in `trace.metrics.Summary`; times are not meant to be measured
    here, and left out."""

    method: Method
    depth: int
    prompts: int
    tokens: int
    drafts: int
    mean_acceptance_length: float | None
    per_position_acceptance: tuple[float, ...]


def evaluate(
    engine: Engine,
    method: Method,
    depth: int,
    prompts: Sequence[str],
    max_tokens: int,
    on_prompt: Callable[[], None],
) -> Evaluation:
    """Answer all prompts at `depth`; `on_prompt` hears of each that is done.

    Raises `PeagleError` if the engine fails.
    """
    metrics = Metrics()
    for prompt in prompts:
        lane = LaneSetting("evaluation", method, depth)
        for event in engine.run(Request((Message("user", prompt),), (lane,), Sampling(), max_tokens)):
            if isinstance(event, Failed):
                raise event.error
            metrics.add(event)
        on_prompt()
    return Evaluation(
        method=method,
        depth=depth,
        prompts=len(prompts),
        tokens=metrics.tokens,
        drafts=metrics.drafts,
        mean_acceptance_length=metrics.mean_acceptance_length,
        per_position_acceptance=metrics.per_position_acceptance,
    )
