"""A reply's events from what was told about it: by the tap step by step, or by the server piece by piece.

Pure: knows no socket. Positions count the reply's tokens from 0.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any, Protocol, Self

import msgspec

from peagle_cli.engine.vllm import wire
from peagle_cli.trace.events import UNKNOWN_ID, Candidate, DraftBatch, Method, TargetView, Token


class Texts(Protocol):
    """Decodes a reply token by token; `models.tokenizer.TokenStream` does."""

    def push(self, token_id: int) -> str:
        """The text that a token adds."""
        ...

    def fork(self) -> Self:
        """An independent stream that goes on from here."""
        ...


class Opinion(msgspec.Struct, frozen=True):
    """What the server says of one token of the reply: its probability, and the likeliest tokens in its place."""

    prob: float
    candidates: tuple[Candidate, ...]


class Piece(msgspec.Struct, frozen=True):
    """What one message of a streamed reply brings. `ids` is None from a server that tells none; `at_s` is when it came,
    on a clock of ours."""

    ids: tuple[int, ...] | None
    text: str
    at_s: float
    opinions: tuple[Opinion, ...] = ()

    @property
    def size(self) -> int:
        """Tokens in it; a text without ids counts as one."""
        return len(self.ids) if self.ids is not None else int(bool(self.text))


class BatchMaker:
    """Makes one lane's batches, in order. `position` is the number of tokens in them so far.

    `texts` of None takes the words from the pieces, as they come. `clock_s` is the lane's clock.
    """

    def __init__(self, lane: str, prompt_tokens: int, texts: Texts | None) -> None:
        self.position = 0
        self.clock_s = 0.0
        self.method: Method = "none"
        self._lane = lane
        self._prompt_tokens = prompt_tokens
        self._texts = texts
        self._step = 0
        self._prefill_s = 0.0
        self._prefilled = 0

    @property
    def prefilled(self) -> int:
        """Tokens of the prompt that were processed, as far as it is known."""
        return self._prefilled

    def prefill(self, step: wire.Step, work: wire.Work) -> None:
        """A part of the prompt was processed, and nothing said yet."""
        self._prefill_s += step.verify_s
        self._prefilled += work.prefilled

    def tapped(self, step: wire.Step, work: wire.Work, since_s: float, opinions: Sequence[Opinion]) -> DraftBatch:
        """The batch of a step that the tap told of. `since_s` is the lane's clock when the request began; `opinions`
        are of its emitted tokens, or none."""
        drafted, bonus = self._tokens(work.drafted, work.accepted, work.sampled[-1])
        draft_s = work.draft_s or 0.0
        verify_s = step.verify_s + self._prefill_s
        self._prefill_s = 0.0
        prefill = min(self._prefilled + work.prefilled, self._prompt_tokens) if self._step == 0 else 0
        return self._batch(
            drafted=drafted,
            accepted=work.accepted,
            bonus=bonus,
            emitted=work.emitted,
            depth=work.depth,
            draft_s=draft_s,
            verify_s=verify_s,
            clock_s=since_s + work.clock_s,
            prefill=prefill,
            opinions=opinions,
        )

    def untapped(self, piece: Piece, depth: int, began_s: float) -> Iterator[DraftBatch]:
        """The batches of a piece, as far as it tells: the target's token, and before it those that must have been
        drafted, for a step yields them together. What was rejected is unknown. `depth` is the server's number of drafts
        per step; `began_s` is when the piece before came."""
        seconds = max(0.0, piece.at_s - began_s)
        ids = piece.ids if piece.ids is not None else (UNKNOWN_ID,) * piece.size
        runs = list(_runs(ids, depth, first=self._step == 0))
        for i, run in enumerate(runs):
            accepted = len(run) - 1
            if piece.ids is None or self._texts is None:
                words = [Token(id, piece.text if i == 0 and j == 0 else "") for j, id in enumerate(run)]
            else:
                words = [Token(id, self._texts.push(id)) for id in run]
            first = self._step == 0
            unknown = () if first else (Token(UNKNOWN_ID, ""),) * (depth - accepted)
            start = sum(map(len, runs[:i]))
            yield self._batch(
                drafted=(*words[:-1], *unknown),
                accepted=accepted,
                bonus=words[-1],
                emitted=len(run),
                depth=depth,
                draft_s=0.0,
                verify_s=seconds / len(runs),
                clock_s=self.clock_s + seconds / len(runs),
                prefill=self._prompt_tokens if first else 0,
                opinions=piece.opinions[start : start + len(run)],
            )

    def _tokens(self, drafted: Sequence[int], accepted: int, bonus: int) -> tuple[tuple[Token, ...], Token]:
        """A step's tokens with the text that each adds, or would have added."""
        assert self._texts is not None, "tokens were told by id"
        fork = self._texts.fork()  # rejected drafts are decoded too, and must leave no trace
        tokens = tuple(Token(id, "" if id == UNKNOWN_ID else fork.push(id)) for id in drafted)
        for token in tokens[:accepted]:
            self._texts.push(token.id)
        return tokens, Token(bonus, self._texts.push(bonus))

    def _batch(
        self,
        *,
        drafted: tuple[Token, ...],
        accepted: int,
        bonus: Token,
        emitted: int,
        depth: int,
        draft_s: float,
        verify_s: float,
        clock_s: float,
        prefill: int,
        opinions: Sequence[Opinion],
    ) -> DraftBatch:
        views = tuple(TargetView(opinion.prob, opinion.candidates) for opinion in opinions[:accepted])
        if len(opinions) > accepted:
            own = opinions[accepted]
            bonus = Token(bonus.id, bonus.text, own.prob, own.candidates)
        self.clock_s = max(self.clock_s, clock_s)
        batch = DraftBatch(
            lane=self._lane,
            step=self._step,
            method=self.method,
            depth=max(depth, len(drafted)),
            drafted=drafted,
            accepted=accepted,
            bonus=bonus,
            emitted=emitted,
            draft_s=draft_s,
            verify_s=verify_s,
            clock_s=self.clock_s,
            prefill=prefill,
            target=views,
        )
        self._step += 1
        self.position += emitted
        return batch


def piece_of(choice: dict[str, Any], at_s: float) -> Piece:
    """A piece from a choice of a streamed chat or completion."""
    delta = choice.get("delta") or {}
    text = delta.get("content") or delta.get("reasoning") or delta.get("reasoning_content") or choice.get("text") or ""
    ids = choice.get("token_ids")
    return Piece(None if ids is None else tuple(ids), text, at_s, tuple(_opinions(choice.get("logprobs"))))


def _opinions(logprobs: dict[str, Any] | None) -> Iterator[Opinion]:
    """From the logprobs of a chat (`content`), with tokens written as ids."""
    for entry in (logprobs or {}).get("content") or []:
        candidates = tuple(
            Candidate(_id(top["token"]), _text(top), _prob(top["logprob"])) for top in entry.get("top_logprobs") or []
        )
        yield Opinion(_prob(entry["logprob"]), tuple(sorted(candidates, key=lambda candidate: -candidate.prob)))


def _id(token: str) -> int:
    """vLLM writes "token_id:123" where it is asked for ids."""
    number = token.removeprefix("token_id:")
    return int(number) if number.isdecimal() else UNKNOWN_ID


def _text(entry: dict[str, Any]) -> str:
    return bytes(entry.get("bytes") or ()).decode(errors="replace")


def _prob(logprob: float) -> float:
    return min(1.0, math.exp(logprob))


def _runs(ids: Sequence[int], depth: int, first: bool) -> Iterator[Sequence[int]]:
    """The least steps that can have yielded these tokens: a prefill yields one, others up to depth + 1."""
    start = 0
    if first and ids:
        yield ids[:1]
        start = 1
    for i in range(start, len(ids), depth + 1):
        yield ids[i : i + depth + 1]
