"""Asynchronous scheduling, where a user asks for it: what is told is true, and what is not known is said."""

from collections.abc import Iterator
from queue import SimpleQueue
from typing import Any

import msgspec
import pytest

from peagle_cli.engine.protocol import LaneSetting, Message, Request, SetDepth
from peagle_cli.engine.vllm.client import VllmEngine
from peagle_cli.engine.vllm.link import Told
from peagle_cli.engine.vllm.own import OwnServers
from peagle_cli.errors import BadInputError
from peagle_cli.trace.events import UNKNOWN_ID, DraftBatch, Finished, Sampling
from tests.engine.vllm.conftest import opening
from tests.engine.vllm.counting import BREAKS_OFF, STRUCTURED, ask_at_once, counted, counted_of, heard, settled

DEPTH = 7


@pytest.fixture(scope="module")
def servers(vllm: None) -> Iterator[OwnServers]:
    with opening("--max-model-len", "1024", "--async-scheduling") as opened:
        yield opened.servers


def test_a_reply_tells_what_was_accepted_and_that_the_rest_is_unknown(servers: OwnServers) -> None:
    engine = VllmEngine(servers)
    assert "schedules asynchronously" in engine.info.notes[0]
    server = servers.backend("peagle").server
    before = settled(server)
    lane = LaneSetting("chat", "peagle", DEPTH)
    events = list(engine.run(Request((Message("user", "Name the planets."),), (lane,), Sampling(), 40)))
    assert counted([events], DEPTH) == settled(server).since(before)
    assert events[-1] == Finished("chat", "stop"), "by the model, with every step told of"
    drafts = [event for event in events if isinstance(event, DraftBatch) and event.drafted]
    assert any(batch.accepted for batch in drafts)
    assert {token.id for batch in drafts for token in batch.rejected} == {UNKNOWN_ID}
    assert all(token.id != UNKNOWN_ID for batch in drafts for token in batch.tokens)
    with pytest.raises(BadInputError, match="cannot be steered"):
        engine.control(SetDepth("chat", 2))


def test_the_tap_counts_what_the_server_counts(servers: OwnServers) -> None:
    backend = servers.backend("peagle")
    assert backend.link is not None
    inbox: SimpleQueue[Any] = SimpleQueue()
    before = settled(backend.server)
    backend.link.listen("", inbox)  # every request there is
    prompt = "Tell me about the sea."
    ask_at_once(
        backend, [(prompt, 40, {}), (prompt, 40, {"stop": ["the"]}), (prompt, 30, STRUCTURED), (prompt, 60, BREAKS_OFF)]
    )
    since = settled(backend.server).since(before)
    backend.link.forget("")
    told = heard(inbox)
    assert all(isinstance(each, Told) for each in told), "no step was lost"
    ours = counted_of([each.work for each in told], DEPTH)
    assert ours == msgspec.structs.replace(since, tokens=ours.tokens)
