"""Requests all at once, and what came of them: as a server counts it, and as we do."""

import re
import threading
import time
from collections.abc import Iterable, Sequence
from queue import SimpleQueue
from typing import Any

from peagle_cli.engine.vllm.attempt import CHAT, Backend
from peagle_cli.engine.vllm.server import Counters, Server
from peagle_cli.engine.vllm.wire import Work
from peagle_cli.trace.events import Event
from peagle_cli.trace.metrics import Metrics

SCHEMA = {
    "name": "a",
    "schema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
}
STRUCTURED: dict[str, Any] = {"response_format": {"type": "json_schema", "json_schema": SCHEMA}}
BREAKS_OFF: dict[str, Any] = {}

Asked = tuple[str, int, dict[str, Any]]
CROWD: list[Asked] = [("Tell me about the sea. " * 13, 30, {}) for _ in range(5)]
"""Prompts that fill most of a block of 128 tokens, and replies that need another."""


def ask_at_once(backend: Backend, asked: Sequence[Asked]) -> None:
    """Have replies made to so many prompts, of so many tokens at most and with what else is asked for; one that
    `BREAKS_OFF` is left after a few pieces."""

    def ask(number: int) -> None:
        prompt, tokens, more = asked[number]
        message = {"role": "user", "content": prompt}
        body = {"model": backend.model, "messages": [message], "stream": True, "max_tokens": tokens, "temperature": 0}
        stream = backend.server.stream(CHAT, {**body, **more}, f"other-{number}")
        for i, _ in enumerate(stream):
            if more is BREAKS_OFF and i == 5:
                stream.close()
                return

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(len(asked))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)


def settled(server: Server) -> Counters:
    """The server's counters, once it has stopped counting: its front end hears of a step a moment later."""
    last = server.counters()
    for _ in range(100):
        time.sleep(0.1)
        now = server.counters()
        if now == last and now is not None:
            return now
        last = now
    raise AssertionError("the counters do not come to rest")


def preemptions(server: Server) -> int:
    """How often it has taken a request's memory for another."""
    return sum(int(float(n)) for n in re.findall(r"(?m)^vllm:num_preemptions_total\{.*\} (\S+)$", server.metrics()))


def heard(inbox: "SimpleQueue[Any]") -> list[Any]:
    """What is in a queue."""
    return [inbox.get() for _ in range(inbox.qsize())]


def counted(replies: Iterable[Sequence[Event]], depth: int) -> Counters:
    """Our figures for replies, as the server counts."""
    metrics = [Metrics(events) for events in replies]
    histograms = [each.summary().acceptance_histogram for each in metrics]
    return Counters(
        drafts=sum(each.drafts for each in metrics),
        draft_tokens=sum(each.draft_tokens for each in metrics),
        accepted_tokens=sum(each.accepted_tokens for each in metrics),
        accepted_at=tuple(sum(sum(histogram[i + 1 :]) for histogram in histograms) for i in range(depth)),
        tokens=sum(each.tokens for each in metrics),
    )


def counted_of(works: Sequence[Work], depth: int) -> Counters:
    """What a tap told of, as the server counts."""
    drafts = [work for work in works if work.drafted]
    return Counters(
        drafts=len(drafts),
        draft_tokens=sum(len(work.drafted) for work in drafts),
        accepted_tokens=sum(work.accepted for work in drafts),
        accepted_at=tuple(sum(work.accepted > i for work in drafts) for i in range(depth)),
        tokens=sum(work.emitted for work in works),
    )
