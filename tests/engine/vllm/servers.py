"""A small OpenAI-compatible server that is not vLLM, for what cannot be asked of vLLM itself."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Handler(BaseHTTPRequestHandler):
    """Says the pieces in `pieces`; wants `key`, if any; breaks off before the end when `breaks`, and waits there for
    `goes_on`, if any."""

    pieces: tuple[str, ...] = ("One", " two", " three")
    key: str | None = None
    breaks = False
    goes_on: threading.Event | None = None
    asked: list[dict[str, Any]]

    def do_GET(self) -> None:
        if self.key and self.headers.get("Authorization") != f"Bearer {self.key}":
            self._answer(401, {"error": {"message": "no"}})
        elif self.path == "/v1/models":
            self._answer(200, {"object": "list", "data": [{"id": "small", "object": "model"}]})
        else:
            self._answer(404, {})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append(asked)
        if asked["max_tokens"] > 1000:
            self._answer(400, {"error": {"message": "max_tokens is too large\x1b[31m"}})
            return
        self.send_response(200)
        self.end_headers()
        for piece in self.pieces:
            self._say({"choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]})
        if self.goes_on:
            self.goes_on.wait(30)
        if self.breaks:
            return
        self._say({"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]})
        self.wfile.write(b"data: [DONE]\n\n")

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""

    def _say(self, event: dict[str, Any]) -> None:
        self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@contextmanager
def serving(**settings: Any) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Its address, and the list of what it is asked."""
    asked: list[dict[str, Any]] = []
    handler = type("Set", (Handler,), {**settings, "asked": asked})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
