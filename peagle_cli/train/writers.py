"""How the target is made to write: through vLLM, many texts at a time, or through our engine, one after the other."""

import importlib
import importlib.util
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from peagle_cli.engine.torch import hardware
from peagle_cli.engine.torch.context import Context
from peagle_cli.engine.torch.decode import Lane
from peagle_cli.engine.torch.target import Target
from peagle_cli.models.tokenizer import Tokenizer
from peagle_cli.trace.events import Sampling

CONTEXT = 2048
"""Longest text in tokens."""


class Order(NamedTuple):
    """A text to continue by at most `max_tokens` tokens. `seed` makes sampling repeatable."""

    ids: list[int]
    max_tokens: int
    temperature: float
    seed: int


class Writer(Protocol):
    """The target as a writer."""

    @property
    def name(self) -> str:
        """What does the work, for people."""
        ...

    @property
    def parallel(self) -> int:
        """How many orders at a time are worth giving."""
        ...

    def write(self, orders: Sequence[Order]) -> list[list[int]]:
        """The continuations, each ended by an end-of-sequence token (included) or by its length."""
        ...


def open_writer(folder: Path) -> Writer:
    """The target in `folder`, through vLLM where it is installed, else through our engine."""
    if importlib.util.find_spec("vllm"):
        return VllmWriter(folder)
    device = hardware.choose_device(None)
    target = Target.load(folder, device, hardware.choose_dtype(None, device), CONTEXT)
    return EngineWriter(target, Tokenizer.load(folder))


class EngineWriter:
    """Our engine, decoding plainly."""

    name = "the embedded engine"
    parallel = 4

    def __init__(self, target: Target, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._context = Context(target, {}, ())

    def write(self, orders: Sequence[Order]) -> list[list[int]]:
        """As `Writer.write` says."""
        return [self._write(order) for order in orders]

    def _write(self, order: Order) -> list[int]:
        sampling = Sampling(temperature=order.temperature, seed=order.seed)
        lane = Lane(
            "writer",
            self._context,
            self._tokenizer,
            order.ids,
            method="none",
            depth=0,
            sampling=sampling,
            max_tokens=order.max_tokens,
        )
        written: list[int] = []
        while not lane.finished:
            written += [token.id for token in lane.step().tokens]
        return written


class VllmWriter:
    """vLLM's offline interface, which runs as many texts side by side as fit."""

    name = "vLLM"
    parallel = 512

    def __init__(self, folder: Path) -> None:
        # Its engine process would outlive a kill of this one.
        os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
        self._vllm = importlib.import_module("vllm")
        self._llm = self._vllm.LLM(
            str(folder), dtype="bfloat16", max_model_len=CONTEXT, max_num_seqs=128, enforce_eager=True
        )

    def write(self, orders: Sequence[Order]) -> list[list[int]]:
        """As `Writer.write` says."""
        prompts = [{"prompt_token_ids": order.ids} for order in orders]
        sampling = [
            self._vllm.SamplingParams(temperature=o.temperature, max_tokens=o.max_tokens, seed=o.seed) for o in orders
        ]
        outputs = self._llm.generate(prompts, sampling, use_tqdm=False)
        return [list(output.outputs[0].token_ids) for output in outputs]
