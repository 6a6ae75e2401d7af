"""Using a server that runs, and is not vLLM: what works works, and the rest is said in a sentence."""

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from peagle_cli.engine.lanes import starting_lane
from peagle_cli.engine.open import open_engine
from peagle_cli.engine.protocol import Engine, EngineSpec, LaneSetting, Message, Request, SetDepth
from peagle_cli.engine.vllm.server import Counters, parse_counters
from peagle_cli.errors import BadInputError, PeagleError
from peagle_cli.models.progress import unheard
from peagle_cli.trace.events import DraftBatch, Event, Failed, Finished, Sampling, Started
from peagle_cli.trace.metrics import Metrics
from tests.engine.vllm.servers import serving


@contextmanager
def attached(url: str) -> Iterator[Engine]:
    with closing(open_engine(EngineSpec(engine=url), unheard)) as engine:
        yield engine


def ask(engine: Engine, max_tokens: int = 20) -> list[Event]:
    lane = starting_lane(engine.info, None, None)
    return list(engine.run(Request((Message("user", "Count."),), (lane,), Sampling(), max_tokens)))


def test_a_reply_is_shown_as_it_comes() -> None:
    with serving() as (url, _), attached(url) as engine:
        events = ask(engine)
    assert isinstance(events[0], Started)
    assert "".join(event.text for event in events if isinstance(event, DraftBatch)) == "One two three"
    assert events[-1] == Finished("chat", "length")
    assert Metrics(events).mean_acceptance_length is None, "nothing is known of drafts"


def test_it_says_what_is_missing_and_asks_only_what_all_servers_know() -> None:
    with serving() as (url, asked), attached(url) as engine:
        ask(engine)
        assert "not vLLM" in engine.info.notes[0]
        assert not engine.info.steerable
    assert set(asked[0]) == {"model", "messages", "stream", "temperature", "top_p", "max_tokens"}
    assert asked[0]["model"] == "small"


def test_commands_it_cannot_obey_are_refused() -> None:
    with serving() as (url, _), attached(url) as engine, pytest.raises(BadInputError, match="out of range"):
        engine.control(SetDepth("chat", 3))


def test_a_method_it_does_not_have_is_refused() -> None:
    with serving() as (url, _), attached(url) as engine:
        lane = LaneSetting("chat", "peagle", 7)
        with pytest.raises(BadInputError, match="no P-EAGLE drafter"):
            list(engine.run(Request((Message("user", "Count."),), (lane,), Sampling(), 20)))


def test_what_the_server_refuses_is_told_in_its_words_made_safe() -> None:
    with serving() as (url, _), attached(url) as engine, pytest.raises(BadInputError) as refused:
        ask(engine, max_tokens=5000)
    assert "max_tokens is too large" in refused.value.message
    assert "\x1b" not in refused.value.message


def test_a_server_that_breaks_off_is_a_failure_behind_what_came() -> None:
    with serving(breaks=True) as (url, _), attached(url) as engine:
        events = ask(engine)
    assert "".join(event.text for event in events if isinstance(event, DraftBatch)) == "One two three"
    assert isinstance(events[-1], Failed)
    assert "broke off" in events[-1].message


def test_the_key_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(key="secret") as (url, _):
        monkeypatch.delenv("PEAGLE_API_KEY", raising=False)
        monkeypatch.delenv("VLLM_API_KEY", raising=False)
        with pytest.raises(BadInputError, match="wants an API key"), attached(url):
            pass
        monkeypatch.setenv("PEAGLE_API_KEY", "secret")
        with attached(url) as engine:
            assert engine.info.model == "small"


def test_nobody_answers() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(PeagleError, match="does not answer"), attached(url):
            pass


@pytest.mark.parametrize("url", ["http://", "http://host:port", "ftp://host", "http://me:secret@host"])
def test_no_address(url: str) -> None:
    with pytest.raises(BadInputError, match="no server's address"), attached(url):
        pass


def test_an_engine_there_is_not() -> None:
    with pytest.raises(BadInputError, match="no engine called 'vlm'"):
        open_engine(EngineSpec(engine="vlm"), unheard)


def test_counters_are_those_of_all_engines_together() -> None:
    text = """# HELP vllm:spec_decode_num_drafts_total Number of drafts.
vllm:spec_decode_num_drafts_total{engine="0",model_name="m"} 20.0
vllm:spec_decode_num_drafts_total{engine="1",model_name="m"} 3.0
vllm:spec_decode_num_drafts_created{engine="0",model_name="m"} 1.79e+09
vllm:generation_tokens_total{engine="0",model_name="m"} 31.0
vllm:spec_decode_num_draft_tokens_total{engine="0",model_name="m"} 46.0
vllm:spec_decode_num_accepted_tokens_total{engine="0",model_name="m"} 9.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="m",position="1"} 2.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="m",position="0"} 7.0
"""
    assert parse_counters(text) == Counters(23, 46, 9, (7, 2), 31)
    assert parse_counters("vllm:num_requests_running 0.0") is None
