"""What a run wrote down: one JSON object a line, steps in groups and validations, for curves and for `tail -f`."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from peagle_cli.errors import PeagleError
from peagle_cli.train.disk import save_text
from peagle_cli.train.loss import Learnt


class StepRecord(msgspec.Struct, frozen=True, tag="steps"):
    """Some steps up to `step`, averaged. `accuracy` is, per draft position, how often the drafter's first choice was
    the target's; `loss` is cross-entropy in nats per slot. `tokens` and `seconds` count from the run's start."""

    step: int
    tokens: int
    seconds: float
    progress: float
    rate: float
    tokens_per_second: float
    loss: float
    accuracy: tuple[float, ...]


class ValidationRecord(msgspec.Struct, frozen=True, tag="validation"):
    """Greedy acceptance on held-out conversations: mean acceptance length by depth, and per position at the deepest."""

    step: int
    tokens: int
    seconds: float
    acceptance_length: dict[int, float]
    per_position: tuple[float, ...]


Record = StepRecord | ValidationRecord


class Log:
    """The log file of a run. What an interrupted run wrote after the checkpoint it goes on from is dropped."""

    def __init__(self, path: Path, step: int) -> None:
        self._path = path
        kept = [record for record in read_log(path) if record.step <= step]
        save_text("".join(_line(record) for record in kept), path)

    def add(self, record: Record) -> None:
        """Write a record down at once. Raises `PeagleError` when the disk does not take it."""
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(_line(record))
        except OSError as error:
            raise PeagleError(
                f"{self._path} could not be written: {error.strerror}.", "Make room and go on."
            ) from error


def read_log(path: Path) -> list[Record]:
    """All whole records of a log; none if there is no log. A kill may have cut the last line short."""
    if not path.exists():
        return []
    records = []
    for line in path.read_bytes().splitlines():
        try:
            records.append(msgspec.json.decode(line, type=Record))
        except msgspec.DecodeError:
            break
    return records


def _line(record: Record) -> str:
    return msgspec.json.encode(record).decode() + "\n"


class Averages:
    """What several steps came to, per draft position."""

    def __init__(self) -> None:
        self._loss: list[float] = []
        self._agreed: list[int] = []
        self._slots: list[int] = []
        self.steps = 0

    def add(self, learnt: Sequence[Learnt]) -> None:
        """Take one step into account."""
        self.steps += 1
        for i, part in enumerate(learnt):
            if i == len(self._slots):
                self._loss.append(0.0)
                self._agreed.append(0)
                self._slots.append(0)
            self._loss[i] += part.loss
            self._agreed[i] += part.agreed
            self._slots[i] += part.slots

    @property
    def loss(self) -> float:
        """Nats per slot."""
        return sum(self._loss) / max(sum(self._slots), 1)

    @property
    def accuracy(self) -> tuple[float, ...]:
        """Agreement with the target's first choice per draft position."""
        return tuple(agreed / max(slots, 1) for agreed, slots in zip(self._agreed, self._slots, strict=True))
