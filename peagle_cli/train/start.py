"""What a drafter's weights are before the first step.

A start at random would spend most of a short training on learning that the target's last state nearly holds the answer.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from peagle_cli.train.conversations import Conversation
from peagle_cli.train.model import TargetHead, TrainableDrafter
from peagle_cli.train.states import StateCache

STREAM_SCALE = 0.2
"""The final norm's start, relative to the target's: at 1 the first losses are above 15, the scores being far too
sure."""


UNSETTLED = 8
"""First tokens of a conversation whose states are left out of statistics: some are a thousand times larger."""
SAMPLE = 128
"""Conversations that statistics are taken from."""


def settled_states(states: StateCache, conversations: Sequence[Conversation]) -> Tensor:
    """A sample of auxiliary states [n, A] to take statistics from."""
    count = min(SAMPLE, len(conversations))
    return torch.cat([states[index][UNSETTLED:] for index in range(count)])


@torch.no_grad()
def start_from_target(drafter: TrainableDrafter, head: TargetHead, states: Tensor) -> None:
    """Let the residual stream begin as the target's last state, scaled, and the head as the target's own rows.

    The target's final norm is rescaled per channel to undo the scaling. First-layer outputs are halved, further layers
    begin near the identity. Mask slots begin at the mean of `states` [n, A]: at zero, the norm behind them is singular.
    """
    hidden = drafter.norm.shape[0]
    drafter.scale.copy_(states.float().std(0).clamp(min=1e-3))
    drafter.fc.mul_(0.1)
    drafter.fc[:, -hidden:] += torch.eye(hidden, device=drafter.fc.device)
    spread = drafter.scale[-hidden:]
    drafter.norm.copy_(STREAM_SCALE * head.norm * spread / spread.median())
    drafter.lm_head.copy_(head.rows)
    for i, layer in enumerate(drafter.layer_list):
        layer.o.mul_(0.05 if i else 0.5)
        layer.down.mul_(0.05 if i else 0.5)
    if drafter.mask_hidden is not None:
        drafter.mask_hidden.copy_(states.float().mean(0).to(drafter.scale.device) / drafter.scale)
