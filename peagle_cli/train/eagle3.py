"""The EAGLE-3 objective: training-time test.

Drafting is unrolled: the slots of pass s are the draft slots (a, s) of all anchors a at once. They hold the true token
and, as hidden state, the drafter's own output of pass s - 1 for the same anchor, as they will when drafting.
"""

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from peagle_cli.train.attention import attend, causal_parts
from peagle_cli.train.batch import Batch
from peagle_cli.train.model import Heads, TrainableDrafter

PASS_WEIGHT = 0.8
"""How much a pass's loss counts, relative to the pass before it."""


def unroll(drafter: TrainableDrafter, batch: Batch, passes: int) -> Iterator[tuple[Tensor, Tensor]]:
    """The drafter's outputs [B, Q, H] of each pass, before the final norm, with their slots' anchors [Q].

    Pass 0 has all real slots, the later ones only those from which answers can be drafted. In pass s, anchor a
    predicts the token behind position a + s + 1.
    """
    length = batch.ids.shape[1]
    embeds = drafter.embed(batch.ids)
    hidden = drafter.fuse(batch.aux)
    anchors = torch.arange(length, device=batch.ids.device)
    layers = drafter.cast_layers()
    seen: list[list[Heads]] = [[] for _ in layers]
    for step in range(passes):
        if step == 1:
            anchors, hidden = anchors[batch.first :], hidden[:, batch.first :]
        own = [length + i * len(anchors) for i in range(step)]
        parts = list(causal_parts(drafter.mask(length), length - len(anchors), length, own, kept=step > 0))
        # Past the end there is no token; what is put there predicts nothing that counts.
        tokens = F.pad(embeds, (0, 0, 0, step + 1))[:, anchors + step + 1]
        rotation = drafter.rotation(anchors + step)
        for layer, earlier in zip(layers, seen, strict=True):
            heads = layer.heads(layer.inputs(tokens, hidden), rotation)
            earlier.append(heads)
            keys = torch.cat([slots.keys for slots in earlier], 1)
            values = torch.cat([slots.values for slots in earlier], 1)
            hidden = layer.finish(hidden, attend(heads.queries, keys, values, parts))
        yield hidden, anchors
