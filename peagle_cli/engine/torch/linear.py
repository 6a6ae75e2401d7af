"""Matrix products with weights, however the weights are kept."""

from collections.abc import Sequence
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor


class Linear(Protocol):
    """y = x Wᵀ for x [n, in], giving [n, out]; `nbytes` is what the weights occupy."""

    @property
    def nbytes(self) -> int:
        """Bytes read per product."""
        ...

    def __call__(self, x: Tensor) -> Tensor:
        """The product of x [n, in] with the weights: [n, out]."""
        ...


class DenseLinear:
    """Weights [out, in] kept in the activations' own dtype."""

    def __init__(self, weight: Tensor) -> None:
        self.weight = weight

    @property
    def nbytes(self) -> int:
        """Bytes read per product."""
        return self.weight.nbytes

    def __call__(self, x: Tensor) -> Tensor:
        """The product of x [n, in] with the weights: [n, out]."""
        return F.linear(x, self.weight)


def stacked(weights: Sequence[Tensor]) -> DenseLinear:
    """Several matrices with the same input as one: a single product, its output split by the caller."""
    return DenseLinear(torch.cat(list(weights)) if len(weights) > 1 else weights[0])
