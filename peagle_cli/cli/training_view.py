"""What one sees of a training run: on a terminal a live picture, elsewhere a line now and then."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import plotext
from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from peagle_cli.text import one_line
from peagle_cli.trace.events import DraftBatch, Event
from peagle_cli.train.log import Record, StepRecord, ValidationRecord
from peagle_cli.train.loop import Listener
from peagle_cli.train.snapshots import PROMPTS, Snapshot

PLOT_SIZE = (56, 12)


@contextmanager
def shown(earlier: Sequence[Record]) -> Iterator[Listener]:
    """Show a run that begins, or goes on after the records `earlier`; at its end the curves of all of it stay."""
    curves = Curves(earlier)
    if not sys.stdout.isatty():
        yield _Lines(curves)
        return
    with Live(console=Console(), refresh_per_second=2) as live:
        yield _Picture(curves, live)


class Curves:
    """What a run has come to over time."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.steps = [record for record in records if isinstance(record, StepRecord)]
        self.validations = [record for record in records if isinstance(record, ValidationRecord)]

    def plots(self) -> list[Text]:
        """Loss and acceptance length over minutes of training, as far as there is something to draw."""
        plots = []
        if len(self.steps) > 1:
            plots.append(
                _plot("loss", [record.seconds / 60 for record in self.steps], {"": [r.loss for r in self.steps]})
            )
        if len(self.validations) > 1:
            depths = self.validations[-1].acceptance_length
            lengths = {
                f"depth {depth}": [record.acceptance_length[depth] for record in self.validations] for depth in depths
            }
            plots.append(_plot("acceptance length", [record.seconds / 60 for record in self.validations], lengths))
        return plots


def _plot(title: str, minutes: list[float], curves: dict[str, list[float]]) -> Text:
    plotext.clear_figure()
    plotext.theme("clear")
    plotext.plot_size(*PLOT_SIZE)
    for label, values in curves.items():
        plotext.plot(minutes, values, label=label or None, marker="braille")
    plotext.title(f"{title} over minutes")
    return Text.from_ansi(plotext.build())


def step_line(record: StepRecord) -> str:
    """Steps in one line."""
    accuracy = " ".join(f"{share:.0%}" for share in record.accuracy)
    return (
        f"{record.progress:6.1%}  step {record.step}  loss {record.loss:.3f}  accuracy {accuracy}  "
        f"{record.tokens_per_second:,.0f} tokens/s  {_remaining(record)}"
    )


def _remaining(record: StepRecord) -> str:
    if record.progress <= 0:
        return ""
    minutes = record.seconds * (1 - record.progress) / record.progress / 60
    return f"{minutes // 60:.0f} h {minutes % 60:.0f} min left" if minutes >= 60 else f"{minutes:.0f} min left"


def validation_line(record: ValidationRecord) -> str:
    """A validation in one line."""
    lengths = "  ".join(f"K={depth} {length:.2f}" for depth, length in record.acceptance_length.items())
    positions = " ".join(f"{share:.2f}" for share in record.per_position)
    return f"held out: acceptance length {lengths}  by position {positions}"


def snapshot_texts(snapshot: Snapshot) -> list[Text]:
    """The replies of a snapshot: accepted tokens green, the target's own plain, the first rejected one struck out."""
    return [
        Text.assemble((f"{prompt} ", "dim"), *_reply(events))
        for prompt, events in zip(PROMPTS, snapshot.replies, strict=True)
    ]


def _reply(events: Sequence[Event]) -> Iterator[tuple[str, str]]:
    for batch in events:
        if not isinstance(batch, DraftBatch):
            continue
        accepted = min(batch.accepted, batch.emitted)
        yield one_line("".join(token.text for token in batch.drafted[:accepted])), "green"
        if batch.rejected:
            yield one_line(batch.rejected[0].text), "red strike dim"
        if batch.emitted > accepted:
            yield one_line(batch.bonus.text), ""
        yield "│", "dim"


class _Lines:
    """For logs and pipes."""

    def __init__(self, curves: Curves) -> None:
        self._curves = curves

    def stepped(self, record: StepRecord) -> None:
        print(step_line(record), flush=True)  # noqa: T201

    def validated(self, record: ValidationRecord, snapshot: Snapshot) -> None:
        print(validation_line(record), flush=True)  # noqa: T201
        for text in snapshot_texts(snapshot):
            print("   ", text.plain, flush=True)  # noqa: T201


class _Picture:
    """For terminals: how far it is, the curves, and what the drafter can do by now."""

    def __init__(self, curves: Curves, live: Live) -> None:
        self._curves = curves
        self._live = live
        self._snapshot: Snapshot | None = None

    def stepped(self, record: StepRecord) -> None:
        """Draw the curves anew."""
        self._curves.steps.append(record)
        self._live.update(self._drawn())

    def validated(self, record: ValidationRecord, snapshot: Snapshot) -> None:
        """Draw the snapshot too."""
        self._curves.validations.append(record)
        self._snapshot = snapshot
        self._live.update(self._drawn())

    def _drawn(self) -> RenderableType:
        parts: list[RenderableType] = [Columns(self._curves.plots())]
        if self._curves.steps:
            last = self._curves.steps[-1]
            line = Table.grid(padding=(0, 1))
            line.add_row(ProgressBar(total=1.0, completed=last.progress, width=20), Text(step_line(last)))
            parts.append(line)
        if self._curves.validations:
            parts.append(Text(validation_line(self._curves.validations[-1])))
        if self._snapshot:
            parts += snapshot_texts(self._snapshot)
        return Group(*parts)
