"""Drafters computed the naive way: the whole sequence, no cache, straight from a checkpoint's tensors."""

import math

import torch
from torch import Tensor

HEAD_DIM, GROUP = 8, 2
THETA, EPS = 10000.0, 1e-5

Tensors = dict[str, Tensor]


def drafter_hidden(weights: Tensors, embeds: Tensor, hidden: Tensor, *, norm_before_residual: bool = False) -> Tensor:
    """The residual stream [n, H] behind the last layer, from all slots' embeddings and hidden states [n, H] each."""
    n = len(embeds)
    for i in range(sum(name.endswith("q_proj.weight") for name in weights)):
        layer = f"layers.{i}"
        if i == 0:
            normed = normed_by(weights, "layers.0.hidden_norm", hidden)
            hidden = normed if norm_before_residual else hidden
            x = torch.cat([normed_by(weights, "layers.0.input_layernorm", embeds), normed], -1)
        else:
            x = normed_by(weights, f"{layer}.input_layernorm", hidden)
        q, k, v = (_heads(x @ weights[f"{layer}.self_attn.{part}_proj.weight"].T) for part in "qkv")
        k, v = k.repeat_interleave(GROUP, 0), v.repeat_interleave(GROUP, 0)
        scores = _turned(q) @ _turned(k).transpose(1, 2) / math.sqrt(HEAD_DIM)
        scores = scores.masked_fill(torch.ones(n, n).triu(1).bool(), -math.inf)
        mixed = (scores.softmax(-1) @ v).transpose(0, 1).reshape(n, -1)
        hidden = hidden + mixed @ weights[f"{layer}.self_attn.o_proj.weight"].T
        x = normed_by(weights, f"{layer}.post_attention_layernorm", hidden)
        gate, up = (x @ weights[f"{layer}.mlp.{part}_proj.weight"].T for part in ("gate", "up"))
        hidden = hidden + (gate * gate.sigmoid() * up) @ weights[f"{layer}.mlp.down_proj.weight"].T
    return hidden


def drafter_logits(weights: Tensors, hidden: Tensor) -> Tensor:
    """The scores [n, Vd] that follow from `drafter_hidden`."""
    return normed_by(weights, "norm", hidden) @ weights["lm_head.weight"].T


def normed_by(weights: Tensors, name: str, x: Tensor) -> Tensor:
    """x under the RMS norm called `name`."""
    return x / (x.pow(2).mean(-1, keepdim=True) + EPS).sqrt() * weights[f"{name}.weight"]


def with_masks(
    weights: Tensors, mask_embed: Tensor, embeds: Tensor, hidden: Tensor, masks: int
) -> tuple[Tensor, Tensor]:
    """A P-EAGLE drafter's inputs with that many mask slots behind the real ones."""
    mask_hidden = weights["mask_hidden"].view(1, -1) @ weights["fc.weight"].T
    return torch.cat([embeds, mask_embed.expand(masks, -1)]), torch.cat([hidden, mask_hidden.expand(masks, -1)])


def _heads(x: Tensor) -> Tensor:
    return x.view(len(x), -1, HEAD_DIM).transpose(0, 1)


def _turned(x: Tensor) -> Tensor:
    half = HEAD_DIM // 2
    angles = torch.arange(x.shape[1])[:, None] / THETA ** (torch.arange(half) / half)
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()], -1)
