"""What a step costs, measured within the engine, operation by operation.

A program of its own, so that it has what the engine's process has: its environment, and nothing else to do. It is given
an `Order` as its argument and says one line, an `Inside`.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import median
from time import perf_counter

import msgspec
import torch

from peagle_cli.bench.budget import budget, finish
from peagle_cli.bench.order import Order
from peagle_cli.bench.report import Inside, Pass, Prefill
from peagle_cli.engine.torch.context import Context
from peagle_cli.engine.torch.engine import TorchEngine
from peagle_cli.trace.events import Message, Method
from peagle_cli.trace.rounds import Setting

WIDTHS = range(1, 12)
"""Tokens per pass: a single one, and up to ten drafts with it."""

FAR_WIDTHS = (1, 4, 8)
"""Those that are measured behind the longer contexts, too."""

CONTEXTS = (128, 1000, 4000, 8000)
"""Tokens of context, as far as the model has room for them."""

PROMPTS = (128, 1000)
"""Tokens of prompts to process."""

_BUDGET_CONTEXT = 512
_STEPS = 16
_SENTENCE = "Count the ships that leave the harbour in the morning, and say how many of them come back at night. "
_MEMORY = 256 << 20  # bytes, more than caches hold


def main() -> None:
    """Measure, and say what was found."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    order = msgspec.json.decode(sys.argv[1], type=Order)
    answers.write(msgspec.json.encode(measure(TorchEngine.open(order.spec), order.settings)) + b"\n")
    answers.flush()


def measure(engine: TorchEngine, settings: Sequence[Setting]) -> Inside:
    """All of it: half a minute on two cores."""
    longest = engine.info.context - max(WIDTHS) - 1
    ids = engine.tokenizer.chat_ids((Message("user", _SENTENCE * (min(max(CONTEXTS), longest) // 10)),))
    contexts = [context for context in CONTEXTS if context < min(len(ids), longest)]
    method: Method = next((method for method, _ in settings if method != "none"), "none")
    return Inside(
        passes=tuple(_passes(engine, ids, contexts)),
        prefills=tuple(_prefill(engine, ids[:tokens], method) for tokens in PROMPTS),
        budgets=tuple(budget(engine, ids[:_BUDGET_CONTEXT], setting) for setting in settings),
        bytes_per_second=_bytes_per_second(),
        weights=engine.info.footprints["none"].weights,
    )


def _passes(engine: TorchEngine, ids: Sequence[int], contexts: Sequence[int]) -> Iterator[Pass]:
    context = engine.new_context()
    for tokens in contexts:
        context.restart(ids[: tokens + 1])
        context.prefill()
        for width in WIDTHS if tokens == contexts[0] else FAR_WIDTHS:
            drafts = ids[tokens + 1 : tokens + width]
            seconds = []
            for _ in range(_STEPS):
                context.restart(ids[: tokens + 1])
                seconds.append(_timed(context, partial(context.verify, drafts)))
            yield Pass(width, tokens, median(seconds[1:]))


def _prefill(engine: TorchEngine, ids: Sequence[int], method: Method) -> Prefill:
    context = engine.new_context()
    context.restart(ids)
    target_s = _timed(context, context.prefill)
    drafter_s = _timed(context, partial(context.read, method)) if method != "none" else 0.0
    return Prefill(len(ids), target_s, drafter_s)


def _timed(context: Context, work: Callable[[], object]) -> float:
    began = perf_counter()
    work()
    finish(context.device)
    return perf_counter() - began


def _bytes_per_second() -> float:
    """By summing up numbers, which all threads do."""
    numbers = torch.ones(_MEMORY // 8, dtype=torch.int64)
    seconds = []
    for _ in range(7):
        began = perf_counter()
        numbers.sum()
        seconds.append(perf_counter() - began)
    return _MEMORY / median(seconds)


if __name__ == "__main__":
    main()
