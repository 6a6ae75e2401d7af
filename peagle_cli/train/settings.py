"""What can be chosen about a training run. The defaults suit a target as small as SmolLM2-135M, on a CPU."""

from typing import Literal

import msgspec

TrainableMethod = Literal["eagle3", "peagle"]

LAYERS: dict[TrainableMethod, int] = {"eagle3": 1, "peagle": 4}
"""Layers by default: P-EAGLE needs more, for its mask slots start from nothing."""
DEPTHS: dict[TrainableMethod, int] = {"eagle3": 3, "peagle": 8}
"""Tokens per training draft by default."""


class End(msgspec.Struct, frozen=True, kw_only=True):
    """When a run is over: after `epochs` passes over the data, or after `minutes` of training where those are given.
    In the last `decay` of it, a share between 0 and 1, the learning rates fall to zero."""

    epochs: float = 6.0
    minutes: float | None = None
    decay: float = 0.25


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that decides what a run computes.

    `layers`, `depth`: None leaves the method's own default. `depth` is how many tokens a training draft has: passes of
    EAGLE-3, or the anchor's own token and depth - 1 mask slots of P-EAGLE. `keep` is COD's ratio. `mask_token` is
    the one whose embedding mask slots have, best one that text never contains. `matrix_rate` is
    Muon's learning rate, `head_rate` and `vector_rate` are AdamW's. `batch_tokens` counts padding. `max_length` is
    where conversations are cut; P-EAGLE's longer ones are partitioned into segments of `segment` real slots.
    """

    method: TrainableMethod
    layers: int | None = None
    intermediate: int = 960
    draft_vocab: int = 6144
    mask_token: int = 3
    depth: int | None = None
    keep: float = 0.7
    end: End = End()
    matrix_rate: float = 4e-3
    head_rate: float = 1e-3
    vector_rate: float = 4e-3
    batch_tokens: int = 2048
    max_length: int = 512
    segment: int = 512
    seed: int = 0

    @property
    def layer_count(self) -> int:
        """Layers, with the method's default filled in."""
        return self.layers or LAYERS[self.method]

    @property
    def train_depth(self) -> int:
        """Tokens per training draft, with the method's default filled in."""
        return self.depth or DEPTHS[self.method]
