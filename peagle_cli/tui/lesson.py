"""What a conversation can teach: a real step of each method, and what steps gave and cost. Pure."""

from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from peagle_cli.recording import demos
from peagle_cli.recording.recording import load_to_show
from peagle_cli.trace.advice import Prediction, predict
from peagle_cli.trace.costs import StepCosts
from peagle_cli.trace.events import UNKNOWN_ID, DraftBatch, Event, Method, Started
from peagle_cli.trace.metrics import Metrics

_DEMO = "depth-switched-live"  # it has every method, at several depths
_CONTEXT = 80  # characters


class Example(NamedTuple):
    """A step that drafted, and the end of the text before it."""

    batch: DraftBatch
    before: str


class Lesson:
    """A fold over the events of replies that follow each other. `source` says whose they are: "this conversation"."""

    def __init__(self, source: str, events: Iterable[Event] = ()) -> None:
        self.source = source
        self._examples: dict[Method, Example] = {}
        self._drafts: dict[Method, Metrics] = {}
        self._costs = StepCosts()
        self._costed: set[int] = set()  # numbers of drafted tokens at which steps were timed
        self._before = ""
        for event in events:
            self.add(event)

    def add(self, event: Event) -> None:
        """Take one more event into account."""
        if isinstance(event, Started):
            self._before = event.prompt[-_CONTEXT:] + "\n"
        elif isinstance(event, DraftBatch):
            self._add_batch(event)
            self._before = (self._before + event.text)[-_CONTEXT:]

    def example(self, method: Method | None = None) -> Example | None:
        """A step of `method`, or of the one drafted with most: the latest of those that show most."""
        if method is None:
            return max(self._examples.items(), key=lambda item: self.drafts(item[0]))[1] if self._examples else None
        return self._examples.get(method)

    def drafts(self, method: Method) -> int:
        """How many steps drafted with `method`."""
        return self._drafts[method].drafts if method in self._drafts else 0

    def acceptance(self, method: Method) -> tuple[float, ...]:
        """The share of drafts that accepted each position and all before it."""
        return self._drafts[method].per_position_acceptance if method in self._drafts else ()

    def mean_draft(self, method: Method) -> tuple[float, float] | None:
        """Mean seconds in the drafter per step of `method`, and mean tokens drafted; None where it was not used."""
        metrics = self._drafts.get(method)
        return (metrics.draft_s / metrics.drafts, metrics.draft_tokens / metrics.drafts) if metrics else None

    def predictions(self, method: Method) -> list[Prediction]:
        """What `method` does at every depth it was measured at and those between, plain decoding first; none where
        steps of a single size were timed, which tell nothing about what depth costs."""
        rates = self.acceptance(method)
        if not rates or len(self._costed) < 2:
            return []
        return [
            predict("none", 0, (), self._costs),
            *(predict(method, depth, rates, self._costs) for depth in range(1, len(rates) + 1)),
        ]

    def _add_batch(self, batch: DraftBatch) -> None:
        if batch.prefill:
            return
        self._costs.add(batch)
        self._costed.add(len(batch.drafted))
        if not batch.drafted:
            return
        self._drafts.setdefault(batch.method, Metrics()).add(batch)
        known = all(token.id != UNKNOWN_ID for token in batch.drafted)
        best = self._examples.get(batch.method)
        if known and (best is None or _shows(batch) >= _shows(best.batch)):
            self._examples[batch.method] = Example(batch, self._before)


@cache
def bundled() -> Lesson:
    """The lesson of a bundled demo, for a conversation that has drafted nothing yet."""
    recording = load_to_show(demos.find(_DEMO))
    return Lesson(f"the demo {_DEMO}", (event for run in recording.runs for event in run))


def _shows(batch: DraftBatch) -> tuple[bool, bool, bool, int]:
    """How well a step serves as an example: some drafts accepted and one rejected, all of them visible words, and more
    than one accepted."""
    visible = all(token.text.strip() for token in (*batch.drafted, batch.bonus))
    return batch.emitted == batch.accepted + 1, 0 < batch.accepted < len(batch.drafted), visible, min(batch.accepted, 3)
