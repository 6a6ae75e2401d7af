"""Servers under load: how many requests are in flight, and what is measured meanwhile."""

import itertools
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from peagle_cli.engine.protocol import EngineSpec
from peagle_cli.engine.vllm.choice import choose
from peagle_cli.engine.vllm.load import Crowd, Load, measure
from peagle_cli.engine.vllm.server import Server
from peagle_cli.errors import PeagleError
from peagle_cli.models.progress import unheard
from peagle_cli.trace.events import Sampling


class Counting(BaseHTTPRequestHandler):
    """Replies after a moment; notes how many requests were there at the same time, and what they asked."""

    lock = threading.Lock()
    now = most = 0
    prompts: list[str]

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        kind = type(self)
        with self.lock:
            kind.now += 1
            kind.most = max(kind.most, kind.now)
            kind.prompts.append(asked["prompt"])
        time.sleep(0.01)
        with self.lock:
            kind.now -= 1
        self.send_response(500 if asked["prompt"] == "break" else 200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@contextmanager
def counting() -> Iterator[tuple[Server, type[Counting]]]:
    handler = type("Fresh", (Counting,), {"prompts": [], "now": 0, "most": 0})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield Server(f"http://127.0.0.1:{server.server_port}"), handler
    finally:
        server.shutdown()
        server.server_close()


def test_so_many_requests_are_in_flight_and_no_more() -> None:
    with counting() as (server, seen):
        crowd = Crowd(server, ({"prompt": str(i)} for i in itertools.count()), 3)
        told: list[int] = []
        crowd.wait_for(12, told.append)
        crowd.stop()
    assert told == list(range(1, 13))
    assert seen.most == 3
    assert seen.now == 0, "stopped, and nothing under way"
    assert sorted(map(int, seen.prompts)) == list(range(len(seen.prompts))), "each once"


def test_a_reply_that_fails_ends_the_measurement() -> None:
    with counting() as (server, _):
        crowd = Crowd(server, ({"prompt": "break"} for _ in itertools.count()), 2)
        with pytest.raises(PeagleError, match="refuses"):
            crowd.wait_for(4, lambda _: None)
        crowd.stop()


def test_a_window_has_enough_replies_for_its_load() -> None:
    load = Load((), (1,), ("one", "two", "three"), 1, Sampling(), 8)
    assert (load.replies(1), load.replies(8)) == (3, 16)


def test_a_real_server_under_load(vllm: None) -> None:
    spec = EngineSpec(engine="vllm", dtype="bfloat16", flags=("--max-model-len", "1024"))
    load = Load((("peagle", 2),), (1, 2), ("Name a river.", "Count to ten."), 2, Sampling(), 6)
    report = measure(choose(spec, unheard), spec, load, unheard)
    assert [(point.name, point.concurrency, point.windows) for point in report.points] == [
        ("P-EAGLE 2", 1, 2),
        ("P-EAGLE 2", 2, 2),
    ]
    for point in report.points:
        assert point.mean_acceptance_length is not None
        assert 1 <= point.mean_acceptance_length <= 3
        assert point.mean_acceptance_length == pytest.approx(1 + sum(point.per_position_acceptance))
        low, high = point.tokens_per_second_range
        assert 0 < low <= point.tokens_per_second <= high
    assert report.versions["vllm"]
