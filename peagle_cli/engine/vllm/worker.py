"""What peagle adds to vLLM's workers, the processes that run the model: the time that drafting takes, and two
repairs.

Named to a server by `--worker-extension-cls peagle_cli.engine.vllm.worker.Extension`; to be imported is all it needs.
"""

import time
from typing import Any

import torch
from vllm.platforms import current_platform
from vllm.v1.sample import rejection_sampler
from vllm.v1.worker.gpu_model_runner import GPUModelRunner

from peagle_cli.engine.vllm import wire


class Extension:
    """vLLM makes this a base of its worker; there is nothing to call."""


class DraftTimer:
    """Times the drafter: on a CPU by the clock, on a GPU by events in its stream."""

    def __init__(self, on_gpu: bool) -> None:
        self._on_gpu = on_gpu
        self._seconds: float | None = None
        self._events: tuple[Any, Any] | None = None

    def run(self, propose: Any, *args: Any, **kwargs: Any) -> Any:
        """Draft, and keep the time."""
        if self._on_gpu:
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            drafts = propose(*args, **kwargs)
            end.record()
            self._events = begin, end
            return drafts
        began = time.perf_counter()
        drafts = propose(*args, **kwargs)
        self._seconds = time.perf_counter() - began
        return drafts

    def take(self) -> float | None:
        """Seconds of the latest drafting, once; to be asked for when its drafts have arrived."""
        if self._events is not None:
            begin, end = self._events
            self._events = None
            end.synchronize()
            return float(begin.elapsed_time(end)) / 1000
        seconds, self._seconds = self._seconds, None
        return seconds


def expand_batch_to_tokens(
    x: torch.Tensor, cu_num_tokens: torch.Tensor, num_tokens: int, replace_from: int = 0, replace_to: int = 0
) -> torch.Tensor:
    """`x` [batch], each item as often as its request has tokens: [num_tokens]. `cu_num_tokens` [batch] counts tokens up
    to and with each request; items equal to `replace_from` become `replace_to`."""
    counts = torch.diff(cu_num_tokens, prepend=cu_num_tokens.new_zeros(1))
    spread = x.repeat_interleave(counts, output_size=num_tokens)
    return torch.where(spread == replace_from, torch.full_like(spread, replace_to), spread)


def _time_drafts() -> None:
    timer = DraftTimer(current_platform.is_cuda())
    propose, take = GPUModelRunner.propose_draft_token_ids, GPUModelRunner.take_draft_token_ids

    def timed(*args: Any, **kwargs: Any) -> Any:
        return timer.run(propose, *args, **kwargs)

    def with_time(*args: Any, **kwargs: Any) -> Any:
        drafts = take(*args, **kwargs)
        if drafts is not None:
            setattr(drafts, wire.DRAFT_S, timer.take())
        return drafts

    GPUModelRunner.propose_draft_token_ids, GPUModelRunner.take_draft_token_ids = timed, with_time


def _mend_cpu_sampling() -> None:
    """vLLM spreads each request's temperature over its tokens by a kernel that, on a CPU, writes into a copy: what is
    used is uninitialised memory (vLLM issue 55005). The replacement does the same in torch."""
    if current_platform.is_cpu():
        rejection_sampler.expand_batch_to_tokens = expand_batch_to_tokens


def _mend_cpu_seeds() -> None:
    """For a prompt in parts vLLM samples behind each, throws that away, and turns a seeded request's generator back by
    its offset; a CPU's has none, and the server ends. The replacement puts its state back as it was before."""
    if not current_platform.is_cpu():
        return
    sample, keep_books = GPUModelRunner._sample, GPUModelRunner._bookkeeping_sync

    def sampled(self: Any, *args: Any, **kwargs: Any) -> Any:
        discarded = self.discard_request_mask.np[: self.input_batch.num_reqs]
        generators = [generator for i, generator in self.input_batch.generators.items() if discarded[i]]
        states = [generator.get_state() for generator in generators]
        output = sample(self, *args, **kwargs)
        for generator, state in zip(generators, states, strict=True):
            generator.set_state(state)
        return output

    def books_kept(self: Any, *args: Any, **kwargs: Any) -> Any:
        generators, self.input_batch.generators = self.input_batch.generators, {}  # which nothing else in there needs
        try:
            return keep_books(self, *args, **kwargs)
        finally:
            self.input_batch.generators = generators

    GPUModelRunner._sample, GPUModelRunner._bookkeeping_sync = sampled, books_kept


_time_drafts()
_mend_cpu_sampling()
_mend_cpu_seeds()
