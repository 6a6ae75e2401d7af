"""The decode loop, a step at a time: draft, verify in one pass of the target, keep what stands."""

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

import torch
from torch import Tensor

from peagle_cli.engine.torch.context import Context
from peagle_cli.engine.torch.drafter import Draft
from peagle_cli.engine.torch.opinions import Opinions
from peagle_cli.engine.torch.sampling import DraftRule, first_choices, probabilities
from peagle_cli.engine.torch.verify import Verdict, verify_greedy, verify_sampled
from peagle_cli.models.tokenizer import Tokenizer
from peagle_cli.trace.events import DraftBatch, FinishReason, Method, Sampling, TargetView, Token


@dataclass(frozen=True, slots=True)
class Work:
    """What a step computed; `logits` [k + 1, V] are the target's."""

    draft: Draft | None
    logits: Tensor
    verdict: Verdict
    draft_s: float
    verify_s: float
    prefill: int = 0

    @property
    def drafted(self) -> list[int]:
        """The drafted tokens."""
        return self.draft.ids if self.draft else []


class Lane:
    """One reply being generated. `method` and `depth` may be set between any two steps, and the next obeys.

    The first step is the prefill: it processes the prompt, drafts nothing and yields the first token. `finished` says
    why the reply ended, None while it goes on. `clock_s` counts the seconds spent in the target and the drafter, not
    those in which events are built or other lanes run.
    """

    def __init__(
        self,
        name: str,
        context: Context,
        tokenizer: Tokenizer,
        prompt: Sequence[int],
        *,
        method: Method,
        depth: int,
        sampling: Sampling,
        max_tokens: int,
        candidates: int = 0,
    ) -> None:
        self.name = name
        self.method = method
        self.depth = depth
        self.clock_s = 0.0
        self.finished: FinishReason | None = None
        self.reused = context.restart(prompt)
        self._context = context
        self._sampling = sampling
        self._generator = _generator(sampling.seed, context.device)
        self._draft_rule = DraftRule(
            sampling.temperature,
            self._generator if sampling.temperature > 0 and sampling.drafts == "sampled" else None,
        )
        self._tokens_left = max_tokens
        self._eos_ids = tokenizer.eos_ids
        self._stream = tokenizer.stream()
        self._opinions = Opinions(tokenizer, candidates) if candidates else None
        self._steps = 0

    @torch.inference_mode()
    def step(self) -> DraftBatch:
        """Generate one to depth + 1 more tokens. Not to be called when `finished`."""
        work = self._speculate() if self._steps else self._prefill()
        self.clock_s += work.draft_s + work.verify_s
        tokens = [*work.drafted[: work.verdict.accepted], work.verdict.bonus]
        emitted = self._emit(tokens)
        batch = self._report(work, emitted)
        self._steps += 1
        return batch

    def _prefill(self) -> Work:
        began = perf_counter()
        unseen = len(self._context.tokens) - self.reused
        logits = self._context.prefill()
        if not logits.isfinite().all():
            raise ArithmeticError("the target's scores are not numbers; its weights may be damaged")
        verdict = self._verify(None, logits)
        verified = perf_counter()
        if self._effective_depth() > 0:
            self._context.read(self.method)
        return Work(None, logits, verdict, perf_counter() - verified, verified - began, unseen)

    def _speculate(self) -> Work:
        began = perf_counter()
        depth = self._effective_depth()
        draft = self._context.draft(self.method, depth, self._draft_rule) if depth > 0 else None
        drafted = perf_counter()
        logits = self._context.verify(draft.ids if draft else [])
        verdict = self._verify(draft, logits)
        return Work(draft, logits, verdict, drafted - began, perf_counter() - drafted)

    def _effective_depth(self) -> int:
        """How many tokens to draft: what was asked for, but no more than could still be emitted before the context is
        full."""
        return 0 if self.method == "none" else min(self.depth, self._context.room - 1)

    def _verify(self, draft: Draft | None, logits: Tensor) -> Verdict:
        ids = draft.ids if draft else []
        if self._sampling.temperature == 0:
            return verify_greedy(ids, first_choices(logits).tolist())
        q = draft.q_over_target(logits.shape[-1]) if draft else None
        return verify_sampled(ids, lambda i: probabilities(logits[i], self._sampling), q, self._generator)

    def _distributions(self, logits: Tensor) -> Tensor:
        """What the target chooses from at each position of `logits` [n, V]; in greedy decoding, what it would at
        temperature 1."""
        if self._sampling.temperature == 0:
            return logits.float().softmax(dim=-1)
        return torch.stack([probabilities(row, self._sampling) for row in logits])

    def _emit(self, tokens: list[int]) -> int:
        """Add `tokens` to the reply, up to and including the one that ends it; returns how many."""
        room = self._context.room
        count = 0
        for token in tokens:
            count += 1
            if token in self._eos_ids:
                self.finished = "stop"
            elif count == self._tokens_left:
                self.finished = "length"
            elif count == room:
                self.finished = "context"
            if self.finished:
                break
        self._context.append(tokens[:count])
        self._tokens_left -= count
        return count

    def _report(self, work: Work, emitted: int) -> DraftBatch:
        accepted = work.verdict.accepted
        fork = self._stream.fork()  # rejected drafts are decoded too, and must leave no trace
        drafted = [Token(id, fork.push(id)) for id in work.drafted]
        for token in drafted[:accepted]:
            self._stream.push(token.id)
        bonus = Token(work.verdict.bonus, self._stream.push(work.verdict.bonus))
        target: tuple[TargetView, ...] = ()
        if self._opinions:
            probs = self._distributions(work.logits)
            target = self._opinions.of_target(work.drafted, probs, work.verdict.thresholds)
            bonus = self._opinions.add([bonus], probs[accepted : accepted + 1])[0]
            if work.draft:
                drafted = self._opinions.add(drafted, work.draft.probs(), work.draft.target_ids)
        return DraftBatch(
            lane=self.name,
            step=self._steps,
            method=self.method,
            depth=self.depth,
            drafted=tuple(drafted),
            accepted=accepted,
            bonus=bonus,
            emitted=emitted,
            draft_s=work.draft_s,
            verify_s=work.verify_s,
            clock_s=self.clock_s,
            prefill=work.prefill,
            target=target,
        )


def _generator(seed: int | None, device: torch.device) -> torch.Generator:
    generator = torch.Generator(device)
    if seed is None:
        generator.seed()
    else:
        generator.manual_seed(seed)
    return generator
