"""A recording reply by reply, with the figures computed from the events, in one pass."""

import io
from collections.abc import Iterator

import msgspec

from peagle_cli.recording.format import Asked, End, Happened
from peagle_cli.recording.reader import Reader
from peagle_cli.trace.by_kind import AcceptanceByKind, KindAcceptance
from peagle_cli.trace.events import DraftBatch, Event, Failed, Finished, FinishReason, Started
from peagle_cli.trace.kinds import TokenKind
from peagle_cli.trace.metrics import Metrics, Summary


class RecordedReply(msgspec.Struct, frozen=True):
    """What one lane made of a request; `request` counts from 1.

    `finish_reason` is None where the engine broke, which `failure` tells, or where nobody waited for the end.
    `complete` is False where the recording was broken off within the request.
    """

    request: int
    started: Started
    text: str
    finish_reason: FinishReason | None
    failure: str | None
    complete: bool
    metrics: Summary
    acceptance_by_kind: dict[TokenKind, KindAcceptance]


def replies(reader: Reader, texts: bool = True) -> Iterator[RecordedReply]:
    """The replies, request by request, in the order in which they started. Raises `BadInputError` as `Reader` does.

    Without `texts`, which are left empty then, memory does not grow with a reply's length.
    """
    request = 0
    lanes: dict[str, _Lane] = {}
    for line in reader:
        match line.entry:
            case Asked():
                request += 1
            case Happened(event=Started() as started):
                lanes[started.lane] = _Lane(started, texts)
            case Happened(event=event):
                lanes[event.lane].add(event)
            case End():
                yield from (lane.reply(request, complete=True) for lane in lanes.values())
                lanes.clear()
    yield from (lane.reply(request, complete=False) for lane in lanes.values())


class _Lane:
    def __init__(self, started: Started, keep_text: bool) -> None:
        self._started = started
        self._metrics = Metrics()
        self._by_kind = AcceptanceByKind()
        self._text = io.StringIO()
        self._keep_text = keep_text
        self._last: Event = started

    def add(self, event: Event) -> None:
        self._metrics.add(event)
        self._by_kind.add(event)
        self._last = event
        if self._keep_text and isinstance(event, DraftBatch):
            self._text.write(event.text)

    def reply(self, request: int, complete: bool) -> RecordedReply:
        return RecordedReply(
            request=request,
            started=self._started,
            text=self._text.getvalue(),
            finish_reason=self._last.reason if isinstance(self._last, Finished) else None,
            failure=self._last.message if isinstance(self._last, Failed) else None,
            complete=complete,
            metrics=self._metrics.summary(),
            acceptance_by_kind=self._by_kind.by_kind(),
        )
