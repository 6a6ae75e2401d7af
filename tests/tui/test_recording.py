"""Chats and races on the screen are recorded, and recorded chats go on there."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from peagle_cli.engine.protocol import EngineSpec, Message
from peagle_cli.engine.torch.engine import TorchEngine
from peagle_cli.recording import sessions
from peagle_cli.recording.format import Asked
from peagle_cli.recording.reader import Reader
from peagle_cli.tui import session
from peagle_cli.tui.options import ChatOptions
from peagle_cli.tui.session import Opened, Phase
from peagle_cli.tui.talk import Talk
from tests.tui.driving import Ready

HISTORY = (Message("user", "Hello"), Message("assistant", "Good day."))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, tiny_engine: TorchEngine, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(session, "start_engine", lambda spec: Ready(tiny_engine))
    monkeypatch.setenv("PEAGLE_DATA_DIR", str(tmp_path))
    yield tmp_path / "sessions"


def reply_to(prompt: str, record: bool = True, history: tuple[Message, ...] = ()) -> Talk:
    """A conversation in which `prompt` has been answered."""
    options = ChatOptions(EngineSpec(), prompt=prompt, max_tokens=8, record=record, history=history, continues="before")
    talk = Talk(options)
    talk.session.open()
    opened = False
    while talk.session.busy or not opened:
        for update in talk.session.poll():
            opened = opened or isinstance(update, Opened)
            talk.take(update)
    return talk


def test_records_and_continues(folder: Path) -> None:
    talk = reply_to("And now?", history=HISTORY)
    talk.session.close()
    with Reader(sessions.find("last")) as reader:
        assert reader.header.continues == "before"
        (asked,) = (line.entry for line in reader if isinstance(line.entry, Asked))
    assert asked.messages == (*HISTORY, Message("user", "And now?"))
    words = "".join(span.text for span in talk.transcript.spans)
    assert words.index("Hello") < words.index("Good day.") < words.index("And now?")


def test_does_not_record_against_the_users_will(folder: Path) -> None:
    reply_to("Hello", record=False).session.close()
    assert not folder.exists()


def test_says_when_recording_fails(folder: Path) -> None:
    folder.write_text("a file where the folder should be")
    talk = reply_to("Hello")
    assert talk.phase is Phase.READY
    assert "no longer recorded" in "".join(span.text for span in talk.transcript.spans)
    assert talk.conversation.reply is not None
    assert talk.conversation.reply.outcome is not None
