"""`peagle chat` on a pseudo-terminal."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pexpect

from tests.cli.program import PATIENCE_S, PEAGLE, Program, engine_of, eventually, is_alive

ENTER_ALTERNATE_SCREEN, LEAVE_ALTERNATE_SCREEN = "\x1b[?1049h", "\x1b[?1049l"


@contextmanager
def terminal(program: Program, *command: str) -> Iterator["pexpect.spawn[Any]"]:
    """A command on a terminal of 100 x 30."""
    environment = program.environment | {"TERM": "xterm-256color"}
    spawned = pexpect.spawn(
        command[0],
        list(command[1:]),
        env=environment,
        dimensions=(30, 100),
        timeout=PATIENCE_S,
        encoding="utf-8",
        codec_errors="replace",
    )
    try:
        yield spawned
    finally:
        spawned.close(force=True)


def read_to_end(peagle: "pexpect.spawn[Any]") -> tuple[str, int | None]:
    """What is left to read, and the exit code."""
    peagle.expect(pexpect.EOF)
    peagle.wait()
    return str(peagle.before), peagle.exitstatus


def engine_process(peagle: "pexpect.spawn[Any]") -> int:
    """The id of its engine's process."""
    assert peagle.pid
    return engine_of(peagle.pid)


def test_plain_streams_without_colours(program: Program, tiny_options: list[str]) -> None:
    chat = [PEAGLE, "chat", "Hello", *tiny_options, "--plain", "--max-tokens", "40"]
    with terminal(program, "sh", "-c", '"$@" 2>/dev/null', "sh", *chat) as peagle:
        text, code = read_to_end(peagle)
    assert code == 0
    assert text.strip()
    assert "\x1b" not in text


def test_a_terminal_without_a_cursor_is_told_what_else_there_is(program: Program) -> None:
    with terminal(program, "env", "TERM=dumb", PEAGLE, "chat") as peagle:
        text, code = read_to_end(peagle)
    assert code == 2
    assert "TERM says dumb" in text and "--plain" in text


def test_ctrl_c_ends_plain_streaming(program: Program, tiny_options: list[str]) -> None:
    chat = ["chat", "Hello", *tiny_options, "--plain", "--max-tokens", "4000", "--depth", "1"]
    with terminal(program, PEAGLE, *chat) as peagle:
        engine = engine_process(peagle)
        peagle.expect("Loading")
        peagle.sendintr()
        assert read_to_end(peagle)[1] == 130
    eventually(lambda: not is_alive(engine))


def test_screen_answers_survives_its_engine_and_leaves_the_terminal_as_it_was(
    program: Program, tiny_options: list[str]
) -> None:
    with terminal(program, PEAGLE, "chat", "Hello", *tiny_options, "--max-tokens", "4000", "--depth", "1") as peagle:
        peagle.expect_exact(ENTER_ALTERNATE_SCREEN)
        peagle.expect("replying")
        os.kill(engine_process(peagle), signal.SIGKILL)
        peagle.expect("killed")
        peagle.sendcontrol("d")
        peagle.expect_exact(LEAVE_ALTERNATE_SCREEN)
        assert read_to_end(peagle)[1] == 0


def test_ended_by_another_it_leaves_the_terminal_as_it_was(program: Program, tiny_options: list[str]) -> None:
    with terminal(program, PEAGLE, "chat", "Hello", *tiny_options, "--max-tokens", "4000", "--depth", "1") as peagle:
        peagle.expect("replying")
        engine = engine_process(peagle)
        peagle.kill(signal.SIGTERM)
        peagle.expect_exact(LEAVE_ALTERNATE_SCREEN)
        assert read_to_end(peagle)[1] == 128 + signal.SIGTERM
    eventually(lambda: not is_alive(engine))


def test_leaving_while_the_engine_loads(program: Program, tiny_options: list[str]) -> None:
    with terminal(program, PEAGLE, "chat", *tiny_options) as peagle:
        peagle.expect_exact(ENTER_ALTERNATE_SCREEN)
        engine = engine_process(peagle)
        peagle.sendcontrol("d")
        assert read_to_end(peagle)[1] == 0
    eventually(lambda: not is_alive(engine))


def test_standard_input_of_a_pipe_never_opens_the_screen(program: Program, tiny_options: list[str]) -> None:
    chat = [PEAGLE, "chat", *tiny_options, "--max-tokens", "5"]
    with terminal(program, "sh", "-c", 'echo Hello | "$@"', "sh", *chat) as peagle:
        text, code = read_to_end(peagle)
    assert code == 0
    assert ENTER_ALTERNATE_SCREEN not in text


def test_unknown_theme_is_bad_input(program: Program) -> None:
    with terminal(program, PEAGLE, "chat", "--theme", "mauve") as peagle:
        text, code = read_to_end(peagle)
    assert code == 2
    assert "mauve" in text
    assert "Traceback" not in text


def test_input_that_is_not_utf8_ends_nothing(program: Program) -> None:
    with terminal(program, PEAGLE, "replay") as peagle:
        peagle.expect_exact(ENTER_ALTERNATE_SCREEN)
        peagle.expect("Enter replays one")
        os.write(peagle.child_fd, b"caf\xe9 \xff\xfe")
        peagle.send("q")
        text, code = read_to_end(peagle)
    assert code == 0
    assert "Traceback" not in text


def test_keys_in_the_settings_that_cannot_be_used_are_bad_input(program: Program) -> None:
    program.config.parent.mkdir(parents=True)
    program.config.write_text('[keys]\n"replay.play" = "n"\n')
    with terminal(program, PEAGLE, "replay") as peagle:
        text, code = read_to_end(peagle)
    assert code == 2
    assert "replay.play and replay.rejection" in text.replace("\r\n", " ")
