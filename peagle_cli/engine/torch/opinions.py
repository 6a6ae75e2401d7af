"""What target and drafter thought of each position, for events that carry candidates."""

from collections.abc import Sequence

import msgspec
from torch import Tensor

from peagle_cli.models.tokenizer import Tokenizer
from peagle_cli.trace.events import Candidate, TargetView, Token


class Opinions:
    """Reads the `count` most likely tokens out of distributions, with their text."""

    def __init__(self, tokenizer: Tokenizer, count: int) -> None:
        self._tokenizer = tokenizer
        self._count = count

    def of_target(self, drafted: Sequence[int], probs: Tensor, thresholds: Sequence[float]) -> tuple[TargetView, ...]:
        """The target's view of each drafted token, given its distributions `probs` [≥ k, V]."""
        untested = [None] * (len(drafted) - len(thresholds))
        rows = self._top(probs[: len(drafted)])
        return tuple(
            TargetView(float(probs[i, token]), rows[i], threshold)
            for i, (token, threshold) in enumerate(zip(drafted, [*thresholds, *untested], strict=True))
        )

    def add(self, tokens: Sequence[Token], probs: Tensor, ids: Tensor | None = None) -> list[Token]:
        """The `tokens` with their author's distributions `probs` [n, Vd] told; `ids` [Vd] are the token ids of its
        columns, None when they are the columns' numbers."""
        return [
            msgspec.structs.replace(
                token,
                prob=float(row[token.id] if ids is None else row[ids == token.id].sum()),
                alternatives=candidates,
            )
            for token, row, candidates in zip(tokens, probs, self._top(probs, ids), strict=True)
        ]

    def _top(self, probs: Tensor, ids: Tensor | None = None) -> list[tuple[Candidate, ...]]:
        best = probs.topk(min(self._count, probs.shape[-1]), dim=-1)
        tokens = best.indices if ids is None else ids[best.indices]
        return [
            tuple(Candidate(id, self._tokenizer.text(id), prob) for id, prob in zip(*row, strict=True))
            for row in zip(tokens.tolist(), best.values.tolist(), strict=True)
        ]
