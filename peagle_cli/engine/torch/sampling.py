"""From logits to the distribution that tokens are drawn from: temperature, then top-k, then top-p.

The order and the ties are those of vLLM and of transformers: top-k keeps every token at least as likely as the k-th,
and top-p keeps the fewest most likely tokens whose probabilities, after temperature and top-k, reach p.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from peagle_cli.trace.events import Sampling


def probabilities(logits: Tensor, sampling: Sampling) -> Tensor:
    """The distribution per row, float32 [n, V], of `logits` [n, V] under a temperature above 0."""
    scaled = logits.float() / sampling.temperature
    if 0 < sampling.top_k < scaled.shape[-1]:
        least = scaled.topk(sampling.top_k, dim=-1).values[:, -1:]
        scaled = scaled.masked_fill(scaled < least, -torch.inf)
    probs = scaled.softmax(dim=-1)
    return _nucleus(probs, sampling.top_p) if sampling.top_p < 1 else probs


def _nucleus(probs: Tensor, top_p: float) -> Tensor:
    """Cut each row of `probs` [n, V] to its most likely tokens that together reach `top_p`; at least one stays."""
    ordered, order = probs.sort(dim=-1, descending=True)
    before = ordered.cumsum(dim=-1) - ordered  # the mass of the tokens ahead of each
    cut = before >= top_p
    cut[:, 0] = False
    kept = torch.zeros_like(probs).scatter_(-1, order, ordered.masked_fill(cut, 0))
    return kept / kept.sum(dim=-1, keepdim=True)


def first_choices(logits: Tensor) -> Tensor:
    """The likeliest token per row of `logits` [n, V], [n]; of equals the first."""
    return logits.max(dim=-1).indices  # on a CPU many times faster than argmax


def draw(probs: Tensor, generator: torch.Generator) -> Tensor:
    """One token id per row, [n], drawn from `probs` [n, V], which need not sum to 1."""
    return torch.multinomial(probs, 1, generator=generator).squeeze(-1)


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
        q = (logits.float() / self.temperature).softmax(dim=-1)
        return draw(q, self.generator), q
