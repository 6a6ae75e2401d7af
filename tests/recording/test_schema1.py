"""A recording made when schema 1 was new is read, and comes to the same figures, forever."""

from pathlib import Path

import pytest

from peagle_cli.recording.overview import overview
from peagle_cli.recording.reader import Reader
from peagle_cli.recording.recording import conversation
from peagle_cli.recording.replies import replies
from peagle_cli.trace.events import Message

OLD = Path(__file__).with_name("schema1.peagle.jsonl")


def test_is_read_whole() -> None:
    with Reader(OLD) as reader:
        read = list(replies(reader))
        assert not reader.torn
    assert [(reply.request, reply.started.lane, reply.finish_reason) for reply in read] == [
        (1, "chat", "cancelled"),
        (2, "plain", "length"),
        (2, "P-EAGLE 2", "length"),
        (3, "chat", None),
    ]
    assert all(reply.complete for reply in read)


def test_has_the_figures_it_had() -> None:
    seen = overview(OLD)
    assert (seen.model, seen.replies, seen.prompt) == ("SmolLM2-135M-Instruct", 4, "Name two rivers.")
    assert seen.tokens == 17
    assert seen.tokens_per_second == pytest.approx(2.9767651254317316)


def test_gives_back_the_conversation() -> None:
    assert conversation(OLD) == (Message("user", "Name two rivers."), Message("assistant", "The"))
