"""A layer's element-wise steps with gradients written out: few passes over memory, and nothing kept but their inputs.

On a CPU, training waits for such steps about as long as for the matrix products between them.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """x / rms(x) · weight over the last dimension of x [..., H], for a weight [H] of the same dtype."""
    apply: Callable[..., Tensor] = _RmsNorm.apply
    return apply(x, weight, eps)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """RoPE: the halves (a, b) of the last dimension of x become (a · cos - b · sin, b · cos + a · sin). `cos` and `sin`
    have half of x's last dimension and need no gradient."""
    apply: Callable[..., Tensor] = _Rotate.apply
    return apply(x, cos, sin)


def swiglu(x: Tensor) -> Tensor:
    """silu(a) · b for the halves (a, b) of the last dimension of x."""
    apply: Callable[..., Tensor] = _SwiGlu.apply
    return apply(x)


class _RmsNorm(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        size = x.shape[-1]
        norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True, dtype=torch.promote_types(x.dtype, torch.float32))
        inverse = norm.square_().div_(size).add_(eps).rsqrt_()
        ctx.save_for_backward(x, weight, inverse)
        normed: Tensor = x * inverse.to(x.dtype)
        return normed.mul_(weight)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, inverse = ctx.saved_tensors
        product = grads[0] * x
        scale = inverse.to(x.dtype)
        to_weight = scale.flatten() @ product.flatten(0, -2)
        if not ctx.needs_input_grad[0]:
            return None, to_weight, None
        slope = (product @ weight)[..., None] * inverse**3 / x.shape[-1]
        to_x = (grads[0] * weight).mul_(scale).addcmul_(x, slope.to(x.dtype), value=-1)
        return to_x, to_weight, None


class _Rotate(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        ctx.save_for_backward(cos, sin)
        return _turned(x, cos, sin, -1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        cos, sin = ctx.saved_tensors
        return _turned(grads[0], cos, sin, 1), None, None


def _turned(x: Tensor, cos: Tensor, sin: Tensor, sign: int) -> Tensor:
    """(a · cos + sign · b · sin, b · cos - sign · a · sin)."""
    turned = torch.empty_like(x)
    (a, b), (to_a, to_b) = x.chunk(2, -1), turned.chunk(2, -1)
    torch.mul(a, cos, out=to_a).addcmul_(b, sin, value=sign)
    torch.mul(b, cos, out=to_b).addcmul_(a, sin, value=-sign)
    return turned


class _SwiGlu(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        gate, up = x.chunk(2, -1)
        return F.silu(gate).mul_(up)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (x,) = ctx.saved_tensors
        gate, up = x.chunk(2, -1)
        to_x = torch.empty_like(x)
        to_gate, to_up = to_x.chunk(2, -1)
        torch.mul(grads[0], F.silu(gate), out=to_up)
        torch.ops.aten.silu_backward(grads[0] * up, gate, grad_input=to_gate)
        return (to_x,)
