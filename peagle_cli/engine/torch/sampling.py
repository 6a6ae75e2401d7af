"""From logits to the distribution that tokens are drawn from: temperature, then top-k, then top-p.

The order is that of vLLM and of transformers. Top-k keeps every token at least as likely as the k-th; top-p keeps the
fewest most likely tokens whose probabilities, after temperature and top-k, reach p, and any as likely as the last.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from peagle_cli.trace.events import Sampling

_LIKELY = 1024
"""How many tokens are sorted at first for top-p: almost always enough, and far cheaper than the whole vocabulary."""


def probabilities(logits: Tensor, sampling: Sampling) -> Tensor:
    """The distribution, float32 [V], at one position with `logits` [V], under a temperature above 0."""
    scaled = _tempered(logits, sampling.temperature)
    if 0 < sampling.top_k < len(scaled):
        scaled[scaled < scaled.topk(sampling.top_k).values[-1]] = -torch.inf
    probs = scaled.softmax(dim=-1)
    if sampling.top_p < 1:
        probs[probs < _least_of_nucleus(probs, sampling.top_p)] = 0
        probs /= probs.sum()
    return probs


def _tempered(logits: Tensor, temperature: float) -> Tensor:
    """`logits` [..., V] over the temperature, in float32; the largest becomes 0, so that none overflows upwards."""
    below_largest = logits.float() - logits.max(dim=-1, keepdim=True).values
    return below_largest / max(temperature, torch.finfo(torch.float32).tiny)


def _least_of_nucleus(probs: Tensor, top_p: float) -> Tensor:
    """The smallest probability among the most likely tokens of `probs` [V] that together reach `top_p`."""
    likely = probs.topk(min(_LIKELY, len(probs))).values
    if likely.sum() < top_p:
        likely = probs.sort(descending=True).values
    last = (likely.cumsum(dim=-1) < top_p).sum()
    return likely[last.clamp(max=len(likely) - 1)]  # rounding may keep the sum of all below a top-p of nearly 1


def first_choices(logits: Tensor) -> Tensor:
    """The likeliest token per row of `logits` [n, V], [n]; of equals the first."""
    return logits.max(dim=-1).indices  # on a CPU many times faster than argmax


def draw(probs: Tensor, generator: torch.Generator) -> Tensor:
    """One token id per row, [n], drawn from `probs` [n, V], which need not sum to 1."""
    # Double precision: summed in single, a vocabulary's small probabilities would be rounded away.
    cumulative = probs.cumsum(dim=-1, dtype=torch.float64)
    total = cumulative[:, -1:]
    point = total * torch.rand(total.shape, dtype=torch.float64, device=probs.device, generator=generator)
    return torch.searchsorted(cumulative, point, right=True).squeeze(-1).clamp_(max=probs.shape[-1] - 1)


class DraftRule(NamedTuple):
    """How a drafter's logits become drafted tokens: its first choice, or a draw at the request's temperature."""

    temperature: float
    generator: torch.Generator | None

    def choose(self, logits: Tensor) -> tuple[Tensor, Tensor | None]:
        """One id per row of `logits` [n, Vd], [n]; and the distributions they were drawn from, None if they were not.

        Only the temperature shapes a drafter's distribution, as in vLLM: any distribution is lossless.
        """
        if self.generator is None:
            return first_choices(logits), None
        q = _tempered(logits, self.temperature).softmax(dim=-1)
        return draw(q, self.generator), q
