"""Greedy decoding at several depths at once, along one reply.

What a step drafts and verifies depends on the tokens before it and on nothing else: not on the depth of the steps that
led there, for greedy replies are the same at every depth. And the first k tokens of a deeper draft are the draft of
depth k. So decoders of different depths that come to the same place share the step there, made by the engine at the
deepest of their depths; each then goes its own way on. They visit one reply's places in order, so that the caches
grow as in any decoding.
"""

from collections.abc import Collection, Sequence

import torch

from peagle_cli.engine.torch.context import Context
from peagle_cli.engine.torch.sampling import DraftRule, first_choices
from peagle_cli.engine.torch.verify import verify_greedy
from peagle_cli.trace.events import Method

_GREEDY = DraftRule(0.0, None)


@torch.inference_mode()
def accepted_by_depth(
    context: Context,
    prompt: Sequence[int],
    method: Method,
    depths: Sequence[int],
    max_tokens: int,
    eos_ids: Collection[int],
) -> tuple[dict[int, list[int]], list[int]]:
    """How many tokens each step of greedy decoding accepts at each of `depths`, and the reply.

    As in `engine.torch.decode.Lane`, the prefill yields the first token and is no step, and a step counts what it
    accepted even where the reply ends within.
    """
    context.restart(prompt)
    reply = [int(first_choices(context.prefill())[0])]
    accepted: dict[int, list[int]] = {depth: [] for depth in depths}
    places = dict.fromkeys(depths, 1)
    while going := {depth: at for depth, at in places.items() if not _ends(reply[:at], max_tokens, eos_ids)}:
        here = min(going.values())
        context.append(reply[len(context.tokens) - len(prompt) : here])
        together = [depth for depth, at in going.items() if at == here]
        draft = context.draft(method, max(together), _GREEDY).ids
        verdict = verify_greedy(draft, first_choices(context.verify(draft)).tolist())
        if here + verdict.accepted >= len(reply):  # no step before this one saw as far
            reply[here:] = [*draft[: verdict.accepted], verdict.bonus]
        for depth in together:
            accepted[depth].append(min(verdict.accepted, depth))
            places[depth] = here + accepted[depth][-1] + 1
    return accepted, reply[: _length(reply, max_tokens, eos_ids)]


def _ends(reply: Sequence[int], max_tokens: int, eos_ids: Collection[int]) -> bool:
    return len(reply) >= max_tokens or any(token in eos_ids for token in reply)


def _length(reply: Sequence[int], max_tokens: int, eos_ids: Collection[int]) -> int:
    return next((i for i, token in enumerate(reply, 1) if token in eos_ids or i == max_tokens), len(reply))
