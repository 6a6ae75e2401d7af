"""How good drafters are on prompts: acceptance through our engine, greedily, with vLLM's definitions."""

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path

import msgspec

from peagle_cli.engine.protocol import EngineInfo, Message
from peagle_cli.engine.torch.engine import TorchEngine
from peagle_cli.errors import BadInputError
from peagle_cli.trace.events import METHOD_NAMES, Method
from peagle_cli.train.convoy import accepted_by_depth


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """One reply: its tokens, and how many were accepted in each of its steps, but for the prefill, which yields one
    token and is no step."""

    ids: tuple[int, ...]
    accepted: tuple[int, ...]

    def accepted_within(self, tokens: int) -> tuple[int, ...]:
        """The same for the steps that end within the reply's first `tokens` tokens."""
        _, *ends = accumulate((accepted + 1 for accepted in self.accepted), initial=1)
        return tuple(accepted for accepted, end in zip(self.accepted, ends, strict=True) if end <= tokens)


class Evaluation(msgspec.Struct, frozen=True, kw_only=True):
    """A drafter on a set of prompts at one depth, as some engine measured it.

    `prompts` names the set, `replies` counts its prompts, `tokens` those of all replies. `max_tokens` is what a reply
    was allowed. Lengths and rates are as in `trace.metrics.Summary`. `by_reply` has the set's prompts in order. Speed
    is measured elsewhere (`peagle compare`).
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
    by_reply: tuple[Reply, ...]


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
            raise BadInputError(
                f"The {METHOD_NAMES[method]} drafter drafts {deepest} tokens at most.", "Choose a smaller --depth."
            )
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
            answered = _answer(engine, ids, method, depths, max_tokens, on_reply)
            found += [
                _evaluation(
                    engine.info, name, method, depth, max_tokens, [(one[depth], reply) for one, reply in answered]
                )
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


def acceptance_length(accepted: Sequence[int]) -> float | None:
    """1 + accepted / drafts, of steps that accepted so many tokens; None where nothing was drafted."""
    return 1 + sum(accepted) / len(accepted) if accepted else None


def _answer(
    engine: TorchEngine,
    prompts: Sequence[Sequence[int]],
    method: Method,
    depths: Sequence[int],
    max_tokens: int,
    on_reply: Callable[[], None],
) -> list[tuple[dict[int, list[int]], list[int]]]:
    """For every prompt, how many tokens the steps accept at each depth, and the reply."""
    answered, context = [], engine.new_context()
    for prompt in prompts:
        answered.append(accepted_by_depth(context, prompt, method, depths, max_tokens, engine.tokenizer.eos_ids))
        on_reply()
    return answered


def _evaluation(
    info: EngineInfo,
    prompts: str,
    method: Method,
    depth: int,
    max_tokens: int,
    answered: Sequence[tuple[Sequence[int], Sequence[int]]],
) -> Evaluation:
    """`answered` has what the steps of each reply accepted, and the reply."""
    accepted = [count for steps, _ in answered for count in steps]
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
        replies=len(answered),
        tokens=sum(len(ids) for _, ids in answered),
        drafts=drafts,
        mean_acceptance_length=acceptance_length(accepted),
        per_position_acceptance=tuple(sum(n > i for n in accepted) / drafts for i in range(depth) if drafts),
        by_reply=tuple(Reply(ids=tuple(ids), accepted=tuple(steps)) for steps, ids in answered),
    )
