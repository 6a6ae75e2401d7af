"""The tokens of a lane and all that has been computed from them: what a next step, or a next turn, can build on."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from peagle_cli.engine.torch.drafter import Draft, Drafter
from peagle_cli.engine.torch.sampling import DraftRule
from peagle_cli.engine.torch.target import Target
from peagle_cli.trace.events import Method


class Context:
    """Token ids, the target's KV cache and auxiliary states, and every drafter's KV cache.

    Between steps the target has processed all tokens but the last. Its auxiliary states are kept for the whole context,
    so that a drafter that was not in use until now can catch up without the target's help. Nothing is cleared on
    the way back: rejected tokens are overwritten by what takes their place.
    """

    def __init__(self, target: Target, drafters: Mapping[Method, Drafter], aux_layers: Sequence[int]) -> None:
        self.tokens: list[int] = []
        self._target = target
        self._drafters = drafters
        self._aux_layers = aux_layers
        width = len(aux_layers) * target.config.hidden_size
        self._ids = torch.empty(target.context, dtype=torch.long, device=target.device)
        self._aux = torch.empty(target.context, width, dtype=target.dtype, device=target.device)
        self._cache = target.new_cache()
        self._draft_caches = {method: drafter.new_cache() for method, drafter in drafters.items()}

    @property
    def device(self) -> torch.device:
        """Where everything is computed."""
        return self._target.device

    @property
    def room(self) -> int:
        """How many more tokens fit."""
        return self._target.context - len(self.tokens)

    def restart(self, prompt: Sequence[int]) -> int:
        """Take `prompt` for the tokens; returns how many of its first tokens the target need not process again."""
        reused = 0
        for old, new in zip(self.tokens[: self._cache.length], prompt[:-1], strict=False):
            if old != new:
                break
            reused += 1
        self._cache.length = reused
        for cache in self._draft_caches.values():
            cache.length = min(cache.length, max(reused - 1, 0))  # slot t holds token t + 1
        self.tokens = []
        self.append(prompt)
        return reused

    def append(self, tokens: Sequence[int]) -> None:
        """Add `tokens`, the last of which the target has yet to process."""
        start = len(self.tokens)
        self.tokens += tokens
        self._ids[start : len(self.tokens)] = torch.tensor(tokens, device=self._ids.device)
        self._cache.length = min(self._cache.length, len(self.tokens) - 1)

    def prefill(self) -> Tensor:
        """Process all tokens that the target has not seen; its logits after the last of them, [1, V]."""
        start, stop = self._cache.length, len(self.tokens)
        hidden, aux = self._target.prefill(self._ids[start:stop], self._cache, self._aux_layers)
        self._aux[start:stop] = aux
        return self._target.logits(hidden[-1:])

    def verify(self, drafts: Sequence[int]) -> Tensor:
        """Process the last token and the `drafts` (k of them) behind it in one pass; the logits after each, [k + 1, V].

        The drafts do not become tokens; `append` says which do.
        """
        start, stop = len(self.tokens) - 1, len(self.tokens) + len(drafts)
        if drafts:
            self._ids[start + 1 : stop] = torch.tensor(drafts, device=self._ids.device)
        hidden, aux = self._target.forward(self._ids[start:stop], self._cache, self._aux_layers)
        self._aux[start:stop] = aux
        return self._target.logits(hidden)

    def read(self, method: Method) -> None:
        """Bring the drafter's cache up to date."""
        self._drafters[method].read(self._ids[: len(self.tokens)], self._aux, self._draft_caches[method])

    def draft(self, method: Method, depth: int, rule: DraftRule) -> Draft:
        """`depth` tokens that the drafter proposes to follow."""
        ids = self._ids[: len(self.tokens)]
        return self._drafters[method].draft(ids, self._aux, self._draft_caches[method], depth, rule)
