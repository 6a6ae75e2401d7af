"""Matrix products with weights, however the weights are kept."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from peagle_cli.engine.torch.hardware import computes_in_bfloat16

INT4_BLOCK = 32
"""Weights that share a scale, in llama.cpp's files and so here."""

_ALIGNMENT = 32
"""Bytes at whose multiples torch's kernel for 8-bit weights reads inputs: elsewhere it ends the process."""

FEW_ROWS = 16
"""Rows up to which weights at 4 and 8 bits are multiplied as they are: more than a step has at any depth."""


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
        return _dense(x, self.weight)


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
        if _widens(x):
            return _dense(x, self.weight)
        product: Tensor = torch.ops.mkldnn._linear_pointwise(x, self._packed, None, "none", [], "")
        return product


class Int4(NamedTuple):
    """A matrix [out, in] at 4 bits, as torch's CPU kernel reads it: w = (q - 8) · scale + zero, in blocks of 32 inputs.

    `packed` holds the numbers q, 0 to 15, in the kernel's order; `scales` [in / 32, out, 2] the scale and the zero of
    each block, in bfloat16.
    """

    packed: Tensor
    scales: Tensor

    @classmethod
    def pack(cls, numbers: Tensor, scales: Tensor, minima: Tensor) -> "Int4":
        """The matrix q · scale + minimum, for numbers q [out, in] and the others [out, in / 32]."""
        zeros = minima.float() + 8 * scales.float()
        pairs = torch.stack([scales.float(), zeros], -1).transpose(0, 1)
        packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(numbers.int(), 2)
        return cls(packed, pairs.bfloat16().contiguous())


class Int4Linear:
    """Weights at 4 bits, multiplied with bfloat16 inputs; the results of a row do not depend on how many there are.

    That kernel is the fastest for the few rows of a decoding step, which wait for memory. A prompt's many rows wait for
    arithmetic, and are multiplied with the same weights in bfloat16, `dense` [out, in], which are mapped from a file.
    """

    def __init__(self, int4: Int4, dense: Sequence[Tensor]) -> None:
        self._packed, self._scales = int4
        self._dense = dense

    @property
    def nbytes(self) -> int:
        """Bytes read per product of a decoding step."""
        return self._packed.nbytes + self._scales.nbytes

    @property
    def weight(self) -> Tensor:
        """W as a plain matrix [out, in], in bfloat16."""
        return torch.cat(list(self._dense))

    def __call__(self, x: Tensor) -> Tensor:
        """The product of x [n, in] with the weights: [n, out]."""
        if x.shape[0] > FEW_ROWS:
            return torch.cat([_dense(x, weight) for weight in self._dense], -1)
        product: Tensor = torch.ops.aten._weight_int4pack_mm_for_cpu(x, self._packed, INT4_BLOCK, self._scales)
        return product


class Int8Linear:
    """Weights rounded to 8 bits with one scale per row [out], multiplied with bfloat16 inputs; the results of a row do
    not depend on how many there are. `dense` as for `Int4Linear`; inputs have a multiple of 16 numbers."""

    def __init__(self, dense: Tensor) -> None:
        self.weight = dense
        wide = dense.float()
        scales = (wide.abs().amax(1) / 127).bfloat16()
        self._numbers = (wide / scales.float()[:, None]).round_().clamp_(-127, 127).to(torch.int8)
        self._scales = scales

    @property
    def nbytes(self) -> int:
        """Bytes read per product of a decoding step."""
        return self._numbers.nbytes + self._scales.nbytes

    def __call__(self, x: Tensor) -> Tensor:
        """The product of x [n, in] with the weights: [n, out]."""
        if x.shape[0] > FEW_ROWS:
            return _dense(x, self.weight)
        aligned = x if x.data_ptr() % _ALIGNMENT == 0 else x.clone()
        return torch._weight_int8pack_mm(aligned, self._numbers, self._scales)


def _dense(x: Tensor, weight: Tensor) -> Tensor:
    """x Wᵀ for plain `weight` [out, in] of the same dtype."""
    return F.linear(x.float(), weight.float()).bfloat16() if _widens(x) else F.linear(x, weight)


def _widens(x: Tensor) -> bool:
    """Whether to multiply x [n, in] in float32: with many rows, a processor that does not compute in bfloat16 is faster
    so, even though it converts the weights each time."""
    many = x.shape[0] > FEW_ROWS and x.dtype == torch.bfloat16
    return many and x.device.type == "cpu" and not computes_in_bfloat16(x.device)


def _onednn_has_bfloat16() -> bool:
    """Whether oneDNN's kernels for bfloat16 run on this processor; AVX2 is too little for them."""
    return torch.backends.mkldnn.is_available() and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def linear(*weights: Tensor, int4: Int4 | None = None) -> Linear:
    """One product with all of `weights` [out, in], kept in the form that its device and dtype multiply fastest.

    Several matrices with the same input are stacked; the caller splits the output. `int4` is the stack at 4 bits.
    """
    if int4 is not None:
        return Int4Linear(int4, weights)
    weight = torch.cat(weights) if len(weights) > 1 else weights[0]
    packs = weight.device.type == "cpu" and weight.dtype == torch.bfloat16 and _onednn_has_bfloat16()
    return PackedLinear(weight) if packs else DenseLinear(weight)
