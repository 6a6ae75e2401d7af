"""The target's auxiliary states for the training data, computed when first asked for and kept on disk.

A shard holds `SHARD` conversations of the data file in order: `states`, the concatenated auxiliary states of all their
tokens, bfloat16 [tokens, A]. They are memory-mapped when read, so a data set may be larger than memory. A shard says
which tokens it was computed from; one that does not fit the data any more is computed anew.
"""

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from peagle_cli.engine.torch.target import Target
from peagle_cli.train.conversations import Conversation
from peagle_cli.train.disk import in_turn, make_folder, save_tensors

SHARD = 128
"""Conversations per shard: some 100 MB for a small target, half a minute of computing."""


def default_aux_layers(layers: int) -> tuple[int, int, int]:
    """Whose states drafters of ours read: an early, a middle, and the last layer's output.

    The last one is enough to compute the target's own distribution from, so soft targets need nothing else.
    """
    return (2, layers // 2 + 1, layers)


class StateCache:
    """Auxiliary states by conversation, each [tokens, A] and bfloat16."""

    def __init__(
        self,
        folder: Path,
        conversations: Sequence[Conversation],
        aux_layers: Sequence[int],
        target: Target,
    ) -> None:
        self._folder = folder
        self._conversations = conversations
        self._aux_layers = aux_layers
        self._target = target
        self.shard = lru_cache(maxsize=16)(self._shard)

    def __getitem__(self, index: int) -> Tensor:
        """The states of conversation `index`, [tokens, A], bfloat16."""
        start = index - index % SHARD
        ends = list(accumulate(len(c.ids) for c in self._conversations[start : index + 1]))
        return self.shard(start)[ends[-1] - len(self._conversations[index].ids) : ends[-1]]

    def _shard(self, start: int) -> Tensor:
        """The states of the shard that begins with conversation `start`, read or computed."""
        conversations = self._conversations[start : start + SHARD]
        path = self._folder / f"states-{start // SHARD:05d}.safetensors"
        made_from = self._fingerprint(conversations)
        states = _read(path, made_from)
        if states is not None:
            return states
        make_folder(self._folder)
        with in_turn(self._folder):
            # Runs on the same data share their states: another one may have computed these meanwhile.
            states = _read(path, made_from)
            if states is None:
                states = torch.cat([self._compute(conversation) for conversation in conversations])
                save_tensors({"states": states}, path, {"made_from": made_from})
        return states

    def _compute(self, conversation: Conversation) -> Tensor:
        ids = torch.tensor(conversation.ids, device=self._target.device)
        _, states = self._target.prefill(ids, self._target.new_cache(), self._aux_layers)
        return states.to("cpu", torch.bfloat16)

    def _fingerprint(self, conversations: Sequence[Conversation]) -> str:
        digest = hashlib.sha256(repr(tuple(self._aux_layers)).encode())
        for conversation in conversations:
            digest.update(repr(conversation.ids).encode())
        return digest.hexdigest()


def _read(path: Path, made_from: str) -> Tensor | None:
    """A shard's states; None if there is none, or one for other conversations."""
    try:
        with safe_open(path, framework="pt") as file:
            if (file.metadata() or {}).get("made_from") != made_from:
                return None
            states: Tensor = file.get_tensor("states")
            return states
    except (OSError, SafetensorError):
        return None
