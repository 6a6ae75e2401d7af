"""How the target is made to write: through vLLM, many texts at a time, or through our engine, one after the other."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from peagle_cli.engine.torch import hardware
from peagle_cli.engine.torch.context import Context
from peagle_cli.engine.torch.decode import Lane
from peagle_cli.engine.torch.target import Target
from peagle_cli.engine.vllm import installation
from peagle_cli.models.tokenizer import Tokenizer
from peagle_cli.trace.events import Sampling
from peagle_cli.train.orders import CONTEXT, Order
from peagle_cli.train.vllm_writer import VllmWriter


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

    def write(self, orders: Sequence[Order]) -> Iterator[tuple[int, list[int]]]:
        """The continuations, each with the index of its order, as they come to their end: by an end-of-sequence token
        (included) or by their length."""
        ...

    def close(self) -> None:
        """Give everything back."""
        ...


def open_writer(folder: Path) -> Writer:
    """The target in `folder`, through vLLM where it is installed, else through our engine.

    Raises `BadInputError` when the Python that is named for vLLM has none, `PeagleError` when vLLM does not start.
    """
    found = installation.find_any()
    if found:
        return VllmWriter(folder, found)
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

    def write(self, orders: Sequence[Order]) -> Iterator[tuple[int, list[int]]]:
        """As `Writer.write` says."""
        for index, order in enumerate(orders):
            yield index, self._write(order)

    def close(self) -> None:
        """Nothing is held."""

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
