"""How good drafters are on prompts: acceptance through our engine, greedily, with vLLM's definitions."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from peagle_cli.engine.protocol import EngineInfo, Message
from peagle_cli.engine.torch.engine import TorchEngine
from peagle_cli.errors import BadInputError
from peagle_cli.trace.events import Method
from peagle_cli.train.convoy import accepted_by_depth


class Evaluation(msgspec.Struct, frozen=True, kw_only=True):
    """A drafter on a set of prompts at one depth, as some engine measured it.

    `prompts` names the set, `replies` counts its prompts, `tokens` those of all replies. `max_tokens` is what a reply
    was allowed. Lengths and rates are as in `trace.metrics.Summary`. Speed is measured elsewhere (`peagle compare`).
    """

    engine: str
    precision: str
    model: str
    drafter: str
    method: Method
    prompts: str
    depth: int
    max_tokens: int
    replies: int
    tokens: int
    drafts: int
    mean_acceptance_length: float | None
    per_position_acceptance: tuple[float, ...]


def evaluate(
    engine: TorchEngine,
    sets: Mapping[str, Sequence[str]],
    depths: Sequence[int],
    max_tokens: int,
    on_reply: Callable[[], None],
) -> list[Evaluation]:
    """Answer the prompts of all `sets` with every drafter of `engine` at all `depths`; `on_reply` hears of each prompt
    that a drafter is done with.

    All depths go along one reply, sharing the prefill and every step that they have in common. Raises `BadInputError`
    for a depth or a prompt that the engine has no room for.
    """
    for method, deepest in engine.info.max_depths.items():
        if max(depths) > deepest:
            raise BadInputError(f"The {method} drafter drafts {deepest} tokens at most.", "Choose a smaller --depth.")
    found = []
    for name, prompts in sets.items():
        ids = [engine.tokenizer.chat_ids((Message("user", prompt),)) for prompt in prompts]
        longest = max(map(len, ids)) + max_tokens + max(depths)
        if longest > engine.info.context:
            raise BadInputError(
                f"A prompt of {name} with its reply takes {longest} tokens, and the context is {engine.info.context}.",
                "Leave it out, or choose a smaller --max-tokens.",
            )
        for method in engine.info.drafters:
            accepted, tokens = _answer(engine, ids, method, depths, max_tokens, on_reply)
            found += [
                _evaluation(engine.info, name, len(ids), method, depth, max_tokens, tokens, accepted[depth])
                for depth in depths
            ]
    return found


def read_evaluations(path: Path) -> list[Evaluation]:
    """What `peagle train eval --output json` wrote. Raises `BadInputError` for anything else."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[Evaluation])
    except (OSError, msgspec.MsgspecError) as error:
        raise BadInputError(
            f"{path} holds no evaluation: {error}.", "Write one with `peagle train eval --output json`."
        ) from error


def _answer(
    engine: TorchEngine,
    prompts: Sequence[Sequence[int]],
    method: Method,
    depths: Sequence[int],
    max_tokens: int,
    on_reply: Callable[[], None],
) -> tuple[dict[int, list[int]], int]:
    """How many tokens the steps of all replies accept at each depth, and how many tokens the replies have."""
    accepted: dict[int, list[int]] = {depth: [] for depth in depths}
    tokens, context = 0, engine.new_context()
    for prompt in prompts:
        steps, length = accepted_by_depth(context, prompt, method, depths, max_tokens, engine.tokenizer.eos_ids)
        tokens += length
        for depth in depths:
            accepted[depth] += steps[depth]
        on_reply()
    return accepted, tokens


def _evaluation(
    info: EngineInfo,
    prompts: str,
    replies: int,
    method: Method,
    depth: int,
    max_tokens: int,
    tokens: int,
    accepted: Sequence[int],
) -> Evaluation:
    drafts = len(accepted)
    return Evaluation(
        engine=info.engine,
        precision=info.machine.precision,
        model=info.model,
        drafter=info.drafters[method],
        method=method,
        prompts=prompts,
        depth=depth,
        max_tokens=max_tokens,
        replies=replies,
        tokens=tokens,
        drafts=drafts,
        mean_acceptance_length=1 + sum(accepted) / drafts if drafts else None,
        per_position_acceptance=tuple(sum(n > i for n in accepted) / drafts for i in range(depth) if drafts),
    )
