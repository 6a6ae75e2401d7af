"""`peagle chat --plain` on a pseudo-terminal, without a prompt: a conversation line by line."""

import os
import re
from collections.abc import Iterator
from typing import Any

import pexpect
import pytest

from peagle_cli.recording import sessions
from peagle_cli.recording.recording import Recording
from peagle_cli.text import printable
from tests.cli.program import PEAGLE, Program
from tests.cli.test_chat_on_a_terminal import ENTER_ALTERNATE_SCREEN, read_to_end, terminal

_STYLE = re.compile(r"\x1b\[[\d;]*m|\x1b\[\?2004[hl]|\x1b\[\?25[hl]|\x1b\[\d*[KAC]|\r")  # what this program may send


@pytest.fixture
def chat(program: Program, tiny_options: list[str]) -> Iterator["pexpect.spawn[Any]"]:
    """A conversation whose replies would be long."""
    with terminal(program, PEAGLE, "chat", "--plain", *tiny_options, "--max-tokens", "3000") as peagle:
        peagle.expect("P-EAGLE 7 › ")
        yield peagle


def test_talks_obeys_and_leaves_the_scrollback(
    program: Program, chat: "pexpect.spawn[Any]", monkeypatch: pytest.MonkeyPatch
) -> None:
    chat.sendline("Hello")
    chat.expect("▏.*▏")
    chat.sendintr()
    chat.expect("stopped · .*token")
    chat.expect("P-EAGLE 7 › ")
    chat.sendline("/depth 2")
    chat.expect("P-EAGLE 2 › ")
    chat.sendline("/figures")
    chat.expect("is the screen's")
    chat.expect("› ")
    chat.sendline("/retry")
    chat.expect("▏.*▏")
    chat.sendintr()
    chat.expect("stopped")
    chat.expect("› ")
    chat.sendcontrol("d")
    text, code = read_to_end(chat)
    assert code == 0
    assert ENTER_ALTERNATE_SCREEN not in text
    monkeypatch.setenv("PEAGLE_DATA_DIR", program.environment["PEAGLE_DATA_DIR"])
    replies = [start for run in Recording.load(sessions.find("last")).runs for start in run.started.values()]
    assert [(start.prompt, start.depth) for start in replies] == [("Hello", 7), ("Hello", 2)]


def test_what_the_model_says_cannot_steer_the_terminal(chat: "pexpect.spawn[Any]") -> None:
    """The tiny model talks noise, control characters included; so does who pastes."""
    chat.send("\x1b[200~two\nlines \x1b]0;title\x07 \x1b[201~\r")
    chat.expect("▏.*▏.*▏")
    reply = str(chat.after)
    chat.sendintr()
    chat.expect("stopped")
    reply += str(chat.before)
    chat.expect("› ")
    shown = _STYLE.sub("", reply)
    assert printable(shown) == shown


def test_what_is_no_text_is_refused_and_the_chat_goes_on(program: Program, tiny_options: list[str]) -> None:
    """In a locale that lets it pass: in others, readline drops it."""
    with terminal(program, "env", "LC_ALL=C", PEAGLE, "chat", "--plain", *tiny_options) as chat:
        chat.expect("› ")
        os.write(chat.child_fd, b"caf\xe9\n")
        chat.expect("not UTF-8")
        chat.expect("› ")
        chat.sendcontrol("d")
        assert read_to_end(chat)[1] == 0


def test_ctrl_c_twice_leaves(chat: "pexpect.spawn[Any]") -> None:
    chat.sendline("Hello")
    chat.expect("▏.*▏")
    chat.sendintr()
    chat.expect("stopped")
    chat.expect("› ")
    chat.sendintr()
    chat.expect("again")
    chat.expect("› ")
    chat.sendintr()
    assert read_to_end(chat)[1] == 130
