"""`peagle chat` without a screen: one prompt, and its reply as text, as one JSON object, or as events.

What is meant to be used goes to standard output, batch by batch; what is meant to be read on the way to standard error.
"""

import contextlib
from typing import Protocol

import msgspec
import typer

from peagle_cli.cli.chat import Output
from peagle_cli.cli.loading import loading_shown
from peagle_cli.cli.recorded import recorded
from peagle_cli.cli.streams import write, write_event
from peagle_cli.engine.lanes import starting_lane
from peagle_cli.engine.open import open_engine
from peagle_cli.engine.protocol import EngineInfo, Message, Request, SetDepth
from peagle_cli.errors import BadInputError
from peagle_cli.text import json_document, printable
from peagle_cli.trace.advice import AutoDepth
from peagle_cli.trace.by_kind import AcceptanceByKind, KindAcceptance
from peagle_cli.trace.events import (
    METHOD_NAMES,
    UNKNOWN,
    DraftBatch,
    Event,
    Failed,
    Finished,
    FinishReason,
    Machine,
    Method,
    Sampling,
    Started,
)
from peagle_cli.trace.kinds import TokenKind
from peagle_cli.trace.metrics import Metrics, Summary
from peagle_cli.tui.options import ChatOptions


class Report(msgspec.Struct, frozen=True):
    """A whole reply, as `--output json` prints it.

    `method`, `depth` and `drafter` are those at the start. `finish_reason` is None when the engine broke; `text` then
    holds what there was. `metrics` are those of `trace/metrics.py`, `acceptance_by_kind` is that of `trace/by_kind.py`.
    """

    text: str
    engine: str
    model: str
    drafter: str | None
    method: Method
    depth: int
    device: str
    dtype: str
    weights: str
    sampling: Sampling
    max_tokens: int
    prompt_tokens: int
    finish_reason: FinishReason | None
    metrics: Summary
    acceptance_by_kind: dict[TokenKind, KindAcceptance]
    machine: Machine
    versions: dict[str, str]


class Reply:
    """What one lane's events add up to."""

    def __init__(self) -> None:
        self.started: Started | None = None
        self.text = ""
        self.metrics = Metrics()
        self.by_kind = AcceptanceByKind()
        self.finish_reason: FinishReason | None = None
        self.failed: Failed | None = None

    def add(self, event: Event) -> None:
        """Take one more event into account."""
        self.metrics.add(event)
        self.by_kind.add(event)
        match event:
            case Started():
                self.started = event
            case DraftBatch():
                self.text += event.text
            case Finished():
                self.finish_reason = event.reason
            case Failed():
                self.failed = event

    def report(self) -> Report | None:
        """All of it; None when the engine broke before it started."""
        if (started := self.started) is None:
            return None
        return Report(
            text=self.text,
            engine=started.engine,
            model=started.model,
            drafter=started.drafter,
            method=started.method,
            depth=started.depth,
            device=started.machine.device,
            dtype=started.machine.dtype,
            weights=started.machine.weights,
            sampling=started.sampling,
            max_tokens=started.max_tokens,
            prompt_tokens=len(started.prompt_ids),
            finish_reason=self.finish_reason,
            metrics=self.metrics.summary(),
            acceptance_by_kind=self.by_kind.by_kind(),
            machine=started.machine,
            versions=started.versions,
        )


class Writer(Protocol):
    """How a reply is put out."""

    def event(self, event: Event) -> None:
        """Write what this event adds, at once."""
        ...

    def end(self, reply: Reply) -> None:
        """Write what only the whole reply tells."""
        ...


def answer(options: ChatOptions, output: Output, candidates: int) -> None:
    """Answer the options' prompt, and put the reply out as `output` says.

    Raises `PeagleError` after a reply that the engine could not finish.
    """
    if options.prompt is None:
        raise BadInputError("There is no prompt.", "Give one as the argument or on standard input.")
    with loading_shown() as on_progress:
        engine = recorded(open_engine(options.spec, on_progress), options.record, options.continues)
    for note in engine.info.notes:
        typer.echo(printable(note), err=True)
    reply = Reply()
    writer = _WRITERS[output]()
    request = _request(options, options.prompt, engine.info, candidates)
    (lane,) = request.lanes
    auto = AutoDepth(engine.info.max_depths[lane.method]) if options.auto and lane.method != "none" else None
    with contextlib.closing(engine), contextlib.closing(engine.run(request)) as events:
        for event in events:
            reply.add(event)
            writer.event(event)
            if auto and isinstance(event, DraftBatch) and auto.add(event) != event.depth:
                engine.control(SetDepth(lane.name, auto.depth))
    writer.end(reply)
    if reply.failed:
        raise reply.failed.error


def _request(options: ChatOptions, prompt: str, info: EngineInfo, candidates: int) -> Request:
    system = () if options.system is None else (Message("system", options.system),)
    return Request(
        messages=(*system, *options.history, Message("user", prompt)),
        lanes=(starting_lane(info, options.method, options.depth),),
        sampling=options.sampling,
        max_tokens=options.max_tokens,
        candidates=candidates,
    )


class TextWriter:
    """The reply's text, and one line of figures on standard error."""

    def event(self, event: Event) -> None:
        """Write a batch's tokens."""
        if isinstance(event, DraftBatch):
            write(printable(event.text))

    def end(self, reply: Reply) -> None:
        """End the last line, and say how it went."""
        if reply.text and not reply.text.endswith("\n"):
            write("\n")
        if reply.started:
            typer.echo(printable(summary_line(reply.started, reply.metrics)), err=True)


class JsonWriter:
    """One object at the end."""

    def event(self, event: Event) -> None:
        """Nothing before the end."""

    def end(self, reply: Reply) -> None:
        """Write the report."""
        if report := reply.report():
            write(json_document(report))


class JsonLinesWriter:
    """One line an event."""

    def event(self, event: Event) -> None:
        """Write the event."""
        write_event(event)

    def end(self, reply: Reply) -> None:
        """Everything has been said."""


_WRITERS: dict[Output, type[Writer]] = {"text": TextWriter, "json": JsonWriter, "jsonl": JsonLinesWriter}


def summary_line(started: Started, metrics: Metrics) -> str:
    """The reply's figures and what made them, in one line."""
    figures = [f"{metrics.tokens} tokens in {metrics.elapsed_s:.2f} s"]
    if metrics.tokens_per_second is not None:
        figures.insert(0, f"{metrics.tokens_per_second:.1f} tok/s")
    if metrics.mean_acceptance_length is not None and metrics.draft_acceptance_rate is not None:
        figures.append(f"effective depth {metrics.mean_acceptance_length:.2f}")
        figures.append(f"{metrics.draft_acceptance_rate:.0%} of drafts accepted")
    how = METHOD_NAMES[started.method]
    if started.drafter:
        how += f" at depth {started.depth}" + (f" by {started.drafter}" if started.drafter != UNKNOWN else "")
    return " · ".join([*figures, started.model, how, f"{started.engine} {started.machine.where}"])
