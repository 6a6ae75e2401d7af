"""The training loop: batches, steps, the schedule, checkpoints, validation, the log.

A run lives in a folder: `latest.safetensors` and `undecayed.safetensors` (checkpoint.py), `log.jsonl`, the snapshots'
recording, and `drafter/`, the drafter so far in vLLM's form. The same command on the same folder goes on where it
stopped.
"""

import math
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

import torch
from msgspec.structs import replace
from torch import Tensor

from peagle_cli.errors import PeagleError
from peagle_cli.train import checkpoint
from peagle_cli.train.batch import Batch, collate
from peagle_cli.train.checkpoint import Moment, Position
from peagle_cli.train.conversations import Conversation
from peagle_cli.train.log import Averages, Log, StepRecord, ValidationRecord
from peagle_cli.train.loss import SoftTargets
from peagle_cli.train.model import TargetHead, TrainableDrafter
from peagle_cli.train.objectives import backward
from peagle_cli.train.optimise import Optimiser, rate_factor
from peagle_cli.train.plan import epoch_plan
from peagle_cli.train.replay import acceptance_by_depth
from peagle_cli.train.settings import Settings
from peagle_cli.train.snapshots import Snapshot, Snapshots
from peagle_cli.train.states import StateCache
from peagle_cli.train.vllm_format import export

CHECKPOINT_S = 120.0
"""Seconds of training between checkpoints: what a kill costs at most."""
VALIDATION_S = 300.0
"""Seconds of training between validations."""
RECORD_STEPS = 20
"""Steps that a line of the log sums up."""
VALIDATION_DEPTHS = (3, 5, 7)


class Listener(Protocol):
    """Who watches a run."""

    def stepped(self, record: StepRecord) -> None:
        """Some more steps were made."""

    def validated(self, record: ValidationRecord, snapshot: Snapshot) -> None:
        """The drafter so far was tried: on held-out conversations, and on the two prompts of every snapshot."""


class Data:
    """Conversations with their states, as batches. `known` [V] marks the draft vocabulary."""

    def __init__(
        self, conversations: Sequence[Conversation], states: StateCache, known: Tensor, dtype: torch.dtype
    ) -> None:
        self.tokens = sum(len(conversation.ids) for conversation in conversations)
        self._conversations = conversations
        self._states = states
        self._known = known
        self._dtype = dtype

    def plan(self, settings: Settings, epoch: int) -> list[list[int]]:
        """An epoch's batches, as indices."""
        lengths = [len(conversation.ids) for conversation in self._conversations]
        return epoch_plan(lengths, settings.batch_tokens, settings.seed, epoch)

    def batch(self, indices: Sequence[int]) -> Batch:
        """The conversations `indices` side by side."""
        states = [self._states[index] for index in indices]
        return collate([self._conversations[index] for index in indices], states, self._known, self._dtype)


class Run:
    """A training run, wherever `folder` says it is. `go` trains to the end."""

    def __init__(
        self,
        folder: Path,
        settings: Settings,
        drafter: TrainableDrafter,
        head: TargetHead,
        training: Data,
        validation: Data,
        snapshots: Snapshots,
        listener: Listener,
    ) -> None:
        self._folder = folder
        self._settings = settings
        self._drafter = drafter
        self._head = head
        self._training = training
        self._validation = validation
        self._snapshots = snapshots
        self._listener = listener
        self._optimiser = Optimiser(drafter, settings)
        moment = self._restored()
        self.position = moment.position if moment else Position()
        self._decaying = moment is not None and moment.decaying
        self._log = Log(folder / "log.jsonl", self.position.step)
        snapshots.forget_after(self.position.seconds)
        self._recent = Averages()
        self._recorded = self.position

    def go(self) -> None:
        """Train until the run's end.

        Raises `PeagleError` when the disk does not take what has to be kept; the last checkpoint then stands. Raises it
        also when the drafter has come to numbers that are none.
        """
        saved = validated = self.position.seconds
        before = time.monotonic()
        for batch in self._batches():
            self._begin_decay_if_due()
            self._step(batch)
            now = time.monotonic()
            self.position, before = replace(self.position, seconds=self.position.seconds + now - before), now
            if self._recent.steps == RECORD_STEPS:
                self._record()
            if self.position.seconds - saved >= CHECKPOINT_S:
                saved = self.position.seconds
                self._save(checkpoint.LATEST)
            if self.position.seconds - validated >= VALIDATION_S:
                validated = self.position.seconds
                self._validate()
        self._save(checkpoint.LATEST)
        self._validate()

    @property
    def progress(self) -> float:
        """From 0 to 1; by tokens, or by time where the run's length was given in minutes."""
        end = self._settings.end
        if end.minutes is not None:
            return self.position.seconds / (60 * end.minutes)
        return self.position.tokens / (end.epochs * self._training.tokens)

    def _restored(self) -> Moment | None:
        """Where to go on. A decay is towards a certain end: with another end, the run goes on from before the decay."""
        moment = checkpoint.restore(self._folder / checkpoint.LATEST, self._drafter, self._optimiser)
        if moment is not None and moment.decaying and moment.end != self._settings.end:
            moment = checkpoint.restore(self._folder / checkpoint.UNDECAYED, self._drafter, self._optimiser)
        return moment

    def _save(self, name: str) -> None:
        moment = Moment(self.position, self._settings.end, self._decaying)
        checkpoint.save(self._folder / name, self._drafter, self._optimiser, moment)

    def _begin_decay_if_due(self) -> None:
        if not self._decaying and self.progress > 1 - self._settings.end.decay:
            self._save(checkpoint.UNDECAYED)
            self._decaying = True

    def _batches(self) -> Iterator[Batch]:
        """Batches from the current position to the run's end. Each step moves the position along."""
        while self.progress < 1:
            for indices in self._training.plan(self._settings, self.position.epoch)[self.position.batch :]:
                if self.progress >= 1:
                    return
                yield self._training.batch(indices)
            self.position = replace(self.position, epoch=self.position.epoch + 1, batch=0)

    def _step(self, batch: Batch) -> None:
        # Seeded per step, so that a run that was interrupted draws what it would have drawn.
        generator = torch.Generator().manual_seed(self._settings.seed * 1_000_003 + self.position.step)
        targets = SoftTargets.of(batch, self._head)
        learnt = backward(self._drafter, batch, targets, self._settings, generator)
        if not all(math.isfinite(part.loss) for part in learnt):
            raise PeagleError(
                f"The loss of step {self.position.step + 1} is not a number.",
                "Begin in another folder, with smaller learning rates.",
            )
        self._recent.add(learnt)
        self._optimiser.step(self._rate_factor)
        self.position = replace(
            self.position,
            step=self.position.step + 1,
            tokens=self.position.tokens + batch.tokens,
            batch=self.position.batch + 1,
        )

    @property
    def _rate_factor(self) -> float:
        return rate_factor(self.position.step, self.progress, self._settings.end.decay)

    def _record(self) -> None:
        """Write down the steps since the last record."""
        seconds = self.position.seconds - self._recorded.seconds
        record = StepRecord(
            step=self.position.step,
            tokens=self.position.tokens,
            seconds=self.position.seconds,
            progress=self.progress,
            rate=self._settings.matrix_rate * self._rate_factor,
            tokens_per_second=(self.position.tokens - self._recorded.tokens) / seconds,
            loss=self._recent.loss,
            accuracy=self._recent.accuracy,
        )
        self._recent, self._recorded = Averages(), self.position
        self._log.add(record)
        self._listener.stepped(record)

    def _validate(self) -> None:
        """Try the drafter so far, and leave it exported."""
        export(self._drafter, self._folder / "drafter")
        batches = (self._validation.batch(indices) for indices in self._validation.plan(self._settings, 0))
        found = acceptance_by_depth(self._drafter, batches, VALIDATION_DEPTHS)
        record = ValidationRecord(
            step=self.position.step,
            tokens=self.position.tokens,
            seconds=self.position.seconds,
            acceptance_length={depth: figures.length for depth, figures in found.items()},
            per_position=found[max(found)].per_position,
        )
        self._log.add(record)
        snapshot = self._snapshots.take(self._folder / "drafter", self.position.step, self.position.seconds)
        self._listener.validated(record, snapshot)
