"""Conversations side by side as tensors, with what there is to learn from them."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from peagle_cli.train.conversations import Conversation


class Batch(NamedTuple):
    """B conversations padded to T tokens.

    `ids` [B, T]; `aux` [B, T, A] the target's auxiliary states; `learnable` [B, T] says whether the distribution that
    the target has at a position is to be learnt: when its next token belongs to the answer and to the draft
    vocabulary. `answer` [B, T] is the same without regard to the vocabulary. `tokens` counts them without padding.
    """

    ids: Tensor
    aux: Tensor
    answer: Tensor
    learnable: Tensor
    tokens: int

    @property
    def first(self) -> int:
        """The first real slot of any sequence whose prediction belongs to an answer."""
        return max(int(self.answer.any(0).nonzero()[0]) - 1, 0)


def collate(
    conversations: Sequence[Conversation], states: Sequence[Tensor], known: Tensor, dtype: torch.dtype
) -> Batch:
    """A batch on the device of `known` [V], which marks the draft vocabulary."""
    device, length = known.device, max(len(c.ids) for c in conversations)
    ids = torch.zeros(len(conversations), length, dtype=torch.long)
    aux = torch.zeros(len(conversations), length, states[0].shape[-1], dtype=dtype)
    answer = torch.zeros(len(conversations), length, dtype=torch.bool)
    for row, (conversation, state) in enumerate(zip(conversations, states, strict=True)):
        count = len(conversation.ids)
        ids[row, :count] = torch.tensor(conversation.ids)
        aux[row, :count] = state
        answer[row, conversation.prompt - 1 : count - 1] = True
    ids, answer = ids.to(device), answer.to(device)
    following = torch.cat([ids[:, 1:], ids[:, :1]], 1)
    tokens = sum(len(conversation.ids) for conversation in conversations)
    return Batch(ids, aux.to(device), answer, answer & known[following], tokens)
