"""Matrix products with weights, however the weights are kept."""

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

    @property
    def weight(self) -> Tensor:
        """W as a plain matrix [out, in]; computed anew where it is kept in another form."""
        ...

    def __call__(self, x: Tensor) -> Tensor:
        """The product of x [n, in] with the weights: [n, out]."""
        ...


class DenseLinear:
    """Weights [out, in] kept as they are."""

    def __init__(self, weight: Tensor) -> None:
        self.weight = weight

    @property
    def nbytes(self) -> int:
        """Bytes read per product."""
        return self.weight.nbytes

    def __call__(self, x: Tensor) -> Tensor:
        """The product of x [n, in] with the weights: [n, out]."""
        return F.linear(x, self.weight)


class PackedLinear:
    """bfloat16 weights in the block order of oneDNN's CPU kernels.

    Decoding waits for weights to come out of memory; in this order they come a third faster than row by row. The
    results are the same to the bit for the few rows of a decoding step.
    """

    def __init__(self, weight: Tensor) -> None:
        self.nbytes = weight.nbytes
        self._packed = torch.ops.mkldnn._reorder_linear_weight(weight, 1)

    @property
    def weight(self) -> Tensor:
        """W as a plain matrix [out, in], computed anew."""
        weight: Tensor = self._packed.to_dense()
        return weight

    def __call__(self, x: Tensor) -> Tensor:
        """The product of x [n, in] with the weights: [n, out]."""
        product: Tensor = torch.ops.mkldnn._linear_pointwise(x, self._packed, None, "none", [], "")
        return product


def linear(*weights: Tensor) -> Linear:
    """One product with all of `weights` [out, in], kept in the form that its device and dtype multiply fastest.

    Several matrices with the same input are stacked; the caller splits the output.
    """
    weight = torch.cat(weights) if len(weights) > 1 else weights[0]
    packs = weight.device.type == "cpu" and weight.dtype == torch.bfloat16 and torch.backends.mkldnn.is_available()
    return PackedLinear(weight) if packs else DenseLinear(weight)
