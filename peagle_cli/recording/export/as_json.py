"""A recording's figures as one JSON object."""

import datetime
from collections.abc import Iterator
from pathlib import Path

import msgspec

from peagle_cli.recording.reader import Reader
from peagle_cli.recording.replies import RecordedReply, replies
from peagle_cli.text import json_document
from peagle_cli.trace.by_kind import KindAcceptance
from peagle_cli.trace.events import FinishReason, Machine, Method, Sampling
from peagle_cli.trace.kinds import TokenKind
from peagle_cli.trace.metrics import Summary


class ReplyReport(msgspec.Struct, frozen=True):
    """One reply: what was asked, how it began, and its figures; see `RecordedReply`."""

    request: int
    lane: str
    prompt: str
    prompt_tokens: int
    method: Method
    depth: int
    drafter: str | None
    sampling: Sampling
    max_tokens: int
    text: str
    finish_reason: FinishReason | None
    failure: str | None
    complete: bool
    metrics: Summary
    acceptance_by_kind: dict[TokenKind, KindAcceptance]


class Report(msgspec.Struct, frozen=True):
    """A recording; `torn` says that its last line was cut off."""

    created: datetime.datetime
    engine: str
    model: str
    machine: Machine
    versions: dict[str, str]
    torn: bool
    replies: list[ReplyReport]


def json_of(path: Path) -> Iterator[str]:
    """The figures of every reply, computed from its events."""
    with Reader(path) as reader:
        reports = [_report(reply) for reply in replies(reader)]
        header = reader.header
        report = Report(
            created=header.created,
            engine=header.engine,
            model=header.model,
            machine=header.machine,
            versions=header.versions,
            torn=reader.torn,
            replies=reports,
        )
    yield json_document(report)


def _report(reply: RecordedReply) -> ReplyReport:
    started = reply.started
    return ReplyReport(
        request=reply.request,
        lane=started.lane,
        prompt=started.prompt,
        prompt_tokens=len(started.prompt_ids),
        method=started.method,
        depth=started.depth,
        drafter=started.drafter,
        sampling=started.sampling,
        max_tokens=started.max_tokens,
        text=reply.text,
        finish_reason=reply.finish_reason,
        failure=reply.failure,
        complete=reply.complete,
        metrics=reply.metrics,
        acceptance_by_kind=reply.acceptance_by_kind,
    )
