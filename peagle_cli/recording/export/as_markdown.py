"""A recording as a report to read: what was asked and answered, how fast, and how the drafts fared."""

import datetime
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from peagle_cli.recording.format import Header
from peagle_cli.recording.reader import Reader
from peagle_cli.recording.replies import RecordedReply, replies
from peagle_cli.text import printable
from peagle_cli.trace.events import METHOD_NAMES
from peagle_cli.trace.metrics import Summary
from peagle_cli.wording import NONE, counted, number

_MARKUP = re.compile(r"([\\`*_{}\[\]<>#!|~&$@])")


def markdown_of(path: Path) -> Iterator[str]:
    """The report, piece by piece; whatever comes from the recording is escaped or fenced."""
    with Reader(path) as reader:
        yield _head(reader.header)
        for reply in replies(reader):
            yield _reply(reply)
        if reader.torn:
            yield "\nThe recording's last line was cut off and is left out.\n"


def _head(header: Header) -> str:
    machine = header.machine
    rows = {
        "recorded": f"{header.created.astimezone(datetime.UTC):%Y-%m-%d %H:%M} UTC",
        "model": header.model,
        "drafters": ", ".join(f"{METHOD_NAMES[method]} ({name})" for method, name in header.drafters.items()) or "none",
        "engine": header.engine,
        "hardware": f"{machine.name}, {machine.device}, {counted(machine.threads, 'thread')}",
        "precision": machine.precision,
        "versions": ", ".join(f"{name} {version}" for name, version in header.versions.items()),
    }
    return f"# Session with {_escaped(header.model)}\n\n{_table(('', ''), rows.items())}"


def _reply(reply: RecordedReply) -> str:
    started, metrics = reply.started, reply.metrics
    how = METHOD_NAMES[started.method] + (f", depth {started.depth}" if started.drafter else "")
    sampling = started.sampling
    chosen = (
        "greedy" if sampling.temperature == 0 else f"temperature {sampling.temperature:g}, top-p {sampling.top_p:g}"
    )
    outcome = reply.failure or (f"ended by {reply.finish_reason}" if reply.finish_reason else "not ended")
    parts = [
        f"\n## Request {reply.request}, lane {_escaped(started.lane)}: {how}\n",
        _fenced(started.prompt),
        f"Reply ({chosen}, {_escaped(outcome)}):\n",
        _fenced(reply.text),
        _table(("figure", "value"), _figures(metrics)),
    ]
    if metrics.drafts:
        positions = enumerate(metrics.per_position_acceptance, 1)
        counts = enumerate(metrics.acceptance_histogram)
        parts += [
            _table(("draft position", "accepted"), ((str(i), f"{share:.1%}") for i, share in positions)),
            _table(("accepted per draft", "drafts"), ((str(n), str(count)) for n, count in counts)),
        ]
    return "\n".join(parts)


def _figures(metrics: Summary) -> list[tuple[str, str]]:
    rows = [
        ("tokens", str(metrics.tokens)),
        ("tokens per second", number(metrics.tokens_per_second, ".1f")),
        ("effective depth (mean acceptance length)", number(metrics.mean_acceptance_length, ".2f")),
        ("draft acceptance rate", number(metrics.draft_acceptance_rate, ".1%")),
        ("engine steps", str(metrics.steps)),
        ("time to first token", _seconds(metrics.time_to_first_token_s)),
    ]
    if metrics.steps:
        rows.append(("mean draft time per step", f"{metrics.draft_s / metrics.steps * 1e3:.2f} ms"))
        rows.append(("mean verify time per step", f"{metrics.verify_s / metrics.steps * 1e3:.2f} ms"))
    return [*rows, ("elapsed", f"{metrics.elapsed_s:.2f} s")]


def _seconds(value: float | None) -> str:
    return NONE if value is None else f"{value:.3f} s"


def _escaped(text: str) -> str:
    """Text of the recording within a line: no markup, no line break."""
    return _MARKUP.sub(r"\\\1", " ".join(printable(text).split()))


def _fenced(text: str) -> str:
    """Text of the recording as a block, in a fence longer than any in it."""
    text = printable(text)
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{fence}text\n{text}\n{fence}\n"


def _table(headings: tuple[str, str], rows: Iterable[tuple[str, str]]) -> str:
    lines = [headings, ("---", "---"), *((name, _escaped(value)) for name, value in rows)]
    return "".join(f"| {name} | {value} |\n" for name, value in lines)
