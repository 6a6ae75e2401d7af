"""Models by hub name, from a server that speaks as much of the hub's protocol as a download needs."""

import hashlib
import http.server
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from peagle_cli.models.hub import is_hub_name

COMMIT = "0123456789abcdef0123456789abcdef01234567"
FILES = {
    "config.json": b'{"architectures": ["LlamaForCausalLM"]}',
    "model.safetensors": bytes(300_000),
    "pytorch_model.bin": b"a pickle, which nobody wants",
    "README.md": b"# Tiny",
}


class Hub(http.server.BaseHTTPRequestHandler):
    """A hub that has one model, nobody/tiny."""

    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._serve(with_body=False)

    def do_GET(self) -> None:
        self._serve(with_body=True)

    def _serve(self, *, with_body: bool) -> None:
        if self.path.startswith("/api/models/nobody/tiny/tree/"):
            entries = [
                {"type": "file", "path": name, "size": len(body), "oid": hashlib.sha1(body).hexdigest()}
                for name, body in FILES.items()
            ]
            self._answer(json.dumps(entries).encode(), with_body)
        elif self.path.startswith("/api/models/nobody/tiny"):
            siblings = [{"rfilename": name} for name in FILES]
            self._answer(json.dumps({"id": "nobody/tiny", "sha": COMMIT, "siblings": siblings}).encode(), with_body)
        elif (body := FILES.get(self.path.rpartition("/")[2])) and "/resolve/" in self.path:
            self._answer(body, with_body)
        else:
            self.send_response(404)
            self.send_header("X-Error-Code", "RepoNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()

    def _answer(self, body: bytes, with_body: bool) -> None:
        self.send_response(200)
        self.send_header("ETag", hashlib.sha1(body).hexdigest())
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def hub() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def _fetch(name: str, endpoint: str, cache: Path) -> tuple[list[str], str]:
    """Ask the store for `name` in a process of its own, since the hub's library reads its settings when imported:
    the lines it printed (each report of progress, then the folder or the error), and what went to standard error."""
    program = (
        "import sys; from peagle_cli.errors import PeagleError; from peagle_cli.models import store\n"
        "def show(p): print(p.stage, p.done, p.total, p.unit)\n"
        "try: print(store.target_folder(sys.argv[1], show))\n"
        "except PeagleError as error: print(error.exit_code, error.message)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, name],
        env={"HF_ENDPOINT": endpoint, "HF_HOME": str(cache), "HF_HUB_DISABLE_XET": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines(), done.stderr


def test_fetches_what_a_model_needs_and_no_pickle(hub: str, tmp_path: Path) -> None:
    lines, noise = _fetch("nobody/tiny", hub, tmp_path)
    assert sorted(path.name for path in Path(lines[-1]).iterdir()) == ["config.json", "model.safetensors"]
    wanted = len(FILES["config.json"]) + len(FILES["model.safetensors"])
    assert lines[0] == "Fetching nobody/tiny 0 0 "
    assert f"Fetching nobody/tiny {wanted} {wanted} bytes" in lines
    assert "%" not in noise, "no progress bars but ours"


def test_what_was_fetched_stays_usable_without_network(hub: str, tmp_path: Path) -> None:
    online, _ = _fetch("nobody/tiny", hub, tmp_path)
    offline, _ = _fetch("nobody/tiny", "http://127.0.0.1:9", tmp_path)
    assert offline[-1] == online[-1]


def test_without_network_one_sentence_says_so(tmp_path: Path) -> None:
    lines, _ = _fetch("nobody/tiny", "http://127.0.0.1:9", tmp_path)
    assert lines[-1] == "1 nobody/tiny is not here yet, and the Hugging Face hub does not answer."


@pytest.mark.parametrize("name", ["nobody/else", "what is/this"])
def test_unknown_names_are_bad_input(hub: str, tmp_path: Path, name: str) -> None:
    lines, _ = _fetch(name, hub, tmp_path)
    assert lines[-1].startswith("2 ")
    assert name in lines[-1]


@pytest.mark.parametrize(
    ("name", "is_one"),
    [("a/b", True), ("./a", False), ("/a", False), ("~/a", False), ("a", False), ("a/b/c", False), ("a/", False)],
)
def test_tells_hub_names_from_paths(name: str, is_one: bool) -> None:
    assert is_hub_name(name) is is_one
