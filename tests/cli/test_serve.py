"""`peagle chat --serve`: the chat in a real browser, and nobody else let in."""

import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import browser
from tests.cli.program import Program, eventually

TAKES_AWAY = "import sys; sys.modules['textual_serve'] = None; from peagle_cli.cli.app import main; main()"


@contextmanager
def served(program: Program, *options: str) -> Iterator[tuple[str, "subprocess.Popen[bytes]"]]:
    """A server that runs, and its address with the token."""
    with program.started("chat", "Hello", "--serve", "--port", "0", *options) as server:
        assert server.stdout
        yield server.stdout.readline().decode().strip(), server


def children(server: "subprocess.Popen[bytes]") -> str:
    return subprocess.run(["pgrep", "-P", str(server.pid)], capture_output=True, text=True, check=False).stdout


@pytest.mark.skipif(browser.CHROMIUM is None, reason="Chromium is not installed (Debian's package is chromium)")
def test_chats_in_a_browser(program: Program, tiny_options: list[str], tmp_path: Path) -> None:
    recordings = program.places / "data" / "sessions"
    with (
        served(program, *tiny_options, "--max-tokens", "5") as (address, server),
        browser.page(tmp_path / "profile") as page,
    ):
        page.open_as(address, address.partition("?")[0])
        eventually(lambda: any('"record":"end"' in file.read_text() for file in recordings.glob("*")))
        page.write("/exit\r")
        eventually(lambda: bool(page.run("document.body.classList.contains('-closed')")))
        eventually(lambda: not children(server))
        assert [request for request in page.requests if not request.startswith(address.partition("?")[0])] == []
        assert not any("Content Security Policy" in message for message in page.messages)
        server.send_signal(signal.SIGINT)
        assert server.wait(60) == 130


def test_lets_in_only_who_knows_the_token(program: Program, tiny_options: list[str]) -> None:
    with served(program, *tiny_options) as (address, server):
        place = address.partition("?")[0]
        assert place.startswith("http://127.0.0.1:")
        for other in (place, f"{place}?token=guess", f"{place}ws", f"{place}static/js/textual.js"):
            with pytest.raises(urllib.error.HTTPError, match="403"):
                urllib.request.urlopen(other)
        assert urllib.request.urlopen(address).status == 200
        taken = program.run("chat", "--serve", "--port", place.rpartition(":")[2].strip("/"))
        assert taken.returncode == 2
        assert "cannot be listened on" in taken.stderr
        server.send_signal(signal.SIGTERM)
        server.wait(60)


def test_says_in_a_sentence_what_it_needs(program: Program) -> None:
    done = subprocess.run(
        [sys.executable, "-c", TAKES_AWAY, "chat", "--serve"],
        capture_output=True,
        text=True,
        env=program.environment,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert done.returncode == 2
    assert "peagle[serve]" in done.stderr
    assert "Traceback" not in done.stderr
    assert program.run("chat", "--serve", "--plain").returncode == 2
