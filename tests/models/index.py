"""A package index of one wheel, served over HTTP. A download can be made to stop half-way until told to go on."""

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Index:
    """A running index. With `stop_next` the next download stops half-way and sets `stopped`, until `go_on` is set."""

    def __init__(self, wheel: Path) -> None:
        self.wheel = wheel
        self.stop_next = False
        self.stopped = threading.Event()
        self.go_on = threading.Event()
        self.downloads = 0
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/simple/"

    def _handler(self) -> type[http.server.BaseHTTPRequestHandler]:
        index = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path.endswith(".whl"):
                    index.downloads += 1
                    wheel = index.wheel.read_bytes()
                    half = len(wheel) // 2
                    self._start("application/octet-stream", len(wheel))
                    self.wfile.write(wheel[:half])
                    self._stop_if_asked()
                    self.wfile.write(wheel[half:])
                elif "tiny-model" in self.path:
                    link = f'<a href="/{index.wheel.name}">{index.wheel.name}</a>'.encode()
                    self._start("text/html", len(link))
                    self.wfile.write(link)
                else:
                    self.send_error(404)

            def _start(self, kind: str, length: int) -> None:
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(length))
                self.end_headers()

            def _stop_if_asked(self) -> None:
                if index.stop_next:
                    index.stop_next = False
                    index.stopped.set()
                    index.go_on.wait()

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        return Handler


@contextmanager
def serve(wheel: Path) -> Iterator[Index]:
    """Run an index of `wheel` until the block ends."""
    index = Index(wheel)
    thread = threading.Thread(target=index.server.serve_forever, daemon=True)
    thread.start()
    try:
        yield index
    finally:
        index.go_on.set()
        index.server.shutdown()
        index.server.server_close()
        thread.join()
