"""Which drafted tokens stand, and what the target says after them (Leviathan et al., arXiv 2211.17192).

p is the target's distribution at a position, q the one its draft d was drawn from.
A draft is accepted with probability min(1, p(d) / q(d)); a rejected one is replaced by a draw from norm(max(p − q, 0)).
A draft that was the drafter's first choice has q(d) = 1: accepted with probability p(d), replaced by p without d.

Accepted drafts and replacement together have exactly the distribution p. When every draft stands, the bonus token is
a draw from p at the next position. Greedy decoding is the limit of temperature 0: p is all on the target's choice.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from peagle_cli.engine.torch.sampling import draw


@dataclass(frozen=True, slots=True)
class Verdict:
    """The first `accepted` drafts stand and `bonus` follows them; `thresholds` are the uniform numbers drawn, one per
    tested draft (none in greedy decoding)."""

    accepted: int
    bonus: int
    thresholds: tuple[float, ...] = ()


def verify_greedy(drafts: Sequence[int], choices: Sequence[int]) -> Verdict:
    """Accept `drafts` (k of them) as long as they are the target's `choices` (its k + 1 first choices)."""
    accepted = 0
    while accepted < len(drafts) and drafts[accepted] == choices[accepted]:
        accepted += 1
    return Verdict(accepted, choices[accepted])


def verify_sampled(
    drafts: Sequence[int], p: Callable[[int], Tensor], q: Tensor | None, generator: torch.Generator
) -> Verdict:
    """Accept or replace `drafts` (k of them) so that what is emitted follows the target.

    `p(i)` [V] is the target's distribution where draft i stands, p(k) the one behind the last: asked for in order, and
    only as far as drafts are accepted. `q` [k, V] are the distributions that the drafts were drawn from, or None when
    each was the drafter's first choice. The numbers that decide come from `generator`: a seed reproduces them.
    """
    uniforms: list[float] = torch.rand(len(drafts), generator=generator, device=generator.device).tolist()
    for i, draft in enumerate(drafts):
        target = p(i)
        ratio = float(target[draft] if q is None else target[draft] / q[i, draft])
        if uniforms[i] >= ratio:
            rest = _residual(target, None if q is None else q[i], draft)
            return Verdict(i, int(draw(rest[None], generator)), tuple(uniforms[: i + 1]))
    return Verdict(len(drafts), int(draw(p(len(drafts))[None], generator)), tuple(uniforms))


def _residual(p: Tensor, q: Tensor | None, draft: int) -> Tensor:
    """max(p − q, 0), not normalised; [V]."""
    if q is None:
        rest = p.clone()
        rest[draft] = 0
    else:
        rest = (p - q).clamp_(min=0)
    # Where p and q agree but for rounding there is no residual mass, and p itself is the limit.
    return rest if bool(rest.sum() > 0) else p
