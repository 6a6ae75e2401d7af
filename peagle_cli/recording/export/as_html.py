"""A recording as one page that replays it in a browser: no network, nothing but its own script may run.

The recording becomes JSON in which no character can end the element it stands in; the page's script makes text
nodes of it and nothing else.
"""

import base64
import hashlib
import html
import json
import string
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec

from peagle_cli.recording.recording import MAX_PAGE_EVENTS, Recording, Run, load_to_show
from peagle_cli.text import printable
from peagle_cli.trace.events import METHOD_NAMES, DraftBatch, Started
from peagle_cli.trace.metrics import Metrics

LONGEST_WAIT_S = 2.0
"""Pauses between two events are cut to this."""

_UNSAFE_IN_SCRIPT = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def html_of(path: Path) -> Iterator[str]:
    """The page. Raises `BadInputError` as `load_to_show` does."""
    recording = load_to_show(path, MAX_PAGE_EVENTS)
    files = resources.files("peagle_cli.recording.export") / "page"
    style, script, page = ((files / name).read_text(encoding="utf-8") for name in ("page.css", "page.js", "page.html"))
    yield string.Template(page).substitute(
        policy=f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; base-uri 'none'",
        title=html.escape(printable(f"peagle: {recording.header.model}")),
        style=style,
        script=script,
        data=_data(recording),
    )


def _hash(text: str) -> str:
    """The text's name in a content security policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _data(recording: Recording) -> str:
    data = {
        "about": recording.header.about + (" · its last line was cut off" if recording.torn else ""),
        "methods": METHOD_NAMES,
        "requests": [_request(run) for run in recording.runs],
        "frames": list(_frames(recording)),
    }
    return json.dumps(_safe(data), separators=(",", ":"), allow_nan=False).translate(_UNSAFE_IN_SCRIPT)


def _safe(value: Any) -> Any:
    """The value with every text in it safe to show."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {name: _safe(item) for name, item in value.items()}
    return [_safe(item) for item in value] if isinstance(value, list | tuple) else value


def _request(run: Run) -> dict[str, Any]:
    lanes = [{"name": lane, "how": _how(run.started.get(lane))} for lane in run.asked.lanes]
    return {"prompt": run.asked.messages[-1].content, "lanes": lanes}


def _how(started: Started | None) -> str:
    if started is None:
        return "not started"
    name = METHOD_NAMES[started.method]
    return f"{name}, depth {started.depth} by {started.drafter}" if started.drafter else name


def _frames(recording: Recording) -> Iterator[dict[str, Any]]:
    """Every event with its seconds on the page's clock, its lane, and the lane's figures from then on."""
    at = before = 0.0
    for index, run in enumerate(recording.runs):
        metrics = {lane: Metrics() for lane in run.asked.lanes}
        for at_s, event in zip(run.times, run, strict=True):
            at, before = at + min(at_s - before, LONGEST_WAIT_S), at_s
            metrics[event.lane].add(event)
            yield {
                "request": index,
                "lane": run.asked.lanes.index(event.lane),
                "at": round(at, 6),
                "event": {"type": "Started"} if isinstance(event, Started) else msgspec.to_builtins(event),
                "figures": _figures(metrics[event.lane]) if isinstance(event, DraftBatch) else None,
            }


def _figures(metrics: Metrics) -> str:
    parts = [f"{metrics.tokens} tokens"]
    if metrics.tokens_per_second is not None:
        parts.append(f"{metrics.tokens_per_second:.1f} tokens/s")
    if metrics.mean_acceptance_length is not None and metrics.draft_acceptance_rate is not None:
        parts.append(f"effective depth {metrics.mean_acceptance_length:.2f}")
        parts.append(f"{metrics.draft_acceptance_rate:.0%} of drafts accepted")
    return " · ".join(parts)
