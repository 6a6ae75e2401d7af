from pathlib import Path

import msgspec
import pytest

from peagle_cli.errors import BadInputError
from peagle_cli.trace import events
from peagle_cli.trace.events import DraftBatch, Event, Finished, Method, Sampling, Started
from peagle_cli.trace.profile import SCHEMA, PrefillTime, Profile, StepTime, simulate
from tests.trace.batches import batch

MACHINE = events.Machine("cuda", "Fast", "bfloat16", "bfloat16", 1)


def a_profile() -> Profile:
    """Verifying takes 1 ms, 0.1 ms a draft and 1 ms per thousand tokens; drafting 0.2 ms a token."""
    points = [(k, n) for k in (0, 4, 8) for n in (0, 1000)]
    draft: dict[Method, tuple[StepTime, ...]] = {
        "peagle": tuple(StepTime(k, n, 0.0002 * k, 9) for k, n in points if k),
    }
    return Profile(
        schema=SCHEMA,
        created="2030-01-01T00:00:00+00:00",
        engine="torch",
        model="Model",
        drafters={"peagle": "drafter"},
        machine=MACHINE,
        versions={},
        verify=tuple(StepTime(k, n, 0.001 + 0.0001 * k + n * 1e-6, 9) for k, n in points),
        draft=draft,
        prefill=(PrefillTime(100, 0.01), PrefillTime(1100, 0.11)),
        draft_prefill={"peagle": (PrefillTime(100, 0.002),)},
    )


def started(prompt_tokens: int) -> Started:
    return Started(
        lane="main",
        engine="torch",
        model="Model",
        drafters={"peagle": "drafter"},
        max_depths={"peagle": 8},
        method="peagle",
        depth=4,
        sampling=Sampling(),
        max_tokens=10,
        prompt="Hello",
        prompt_ids=tuple(range(prompt_tokens)),
        reused=0,
        machine=MACHINE,
        versions={},
    )


def test_times_between_and_beyond_what_was_measured() -> None:
    profile = a_profile()
    assert profile.verify_s(2, 500) == pytest.approx(0.0017)
    assert profile.verify_s(10, 2000) == pytest.approx(0.004)
    assert profile.draft_s("peagle", 6, 1) == pytest.approx(0.0012)
    assert profile.prefill_s(600) == pytest.approx(0.06)
    assert profile.prefill_s(10) == pytest.approx(0.01), "a pass has a price of its own"


def test_replies_are_timed_anew_step_by_step() -> None:
    first = msgspec.structs.replace(batch(0, prefill=200), depth=4)
    lane: list[Event] = [started(200), first, batch(4, 2), batch(4, 0), Finished("main", "length")]
    timed = list(simulate(lane, a_profile()))
    batches = [event for event in timed if isinstance(event, DraftBatch)]
    assert batches[0].verify_s == pytest.approx(0.02)
    assert batches[0].draft_s == pytest.approx(0.002)
    assert batches[1].verify_s == pytest.approx(0.0014 + 201e-6)
    assert batches[2].verify_s == pytest.approx(0.0014 + 204e-6), "three tokens further"
    assert batches[2].clock_s == pytest.approx(sum(b.draft_s + b.verify_s for b in batches))
    assert [b.accepted for b in batches] == [0, 2, 0]
    assert [type(event) for event in timed] == [type(event) for event in lane]


def test_reads_what_was_written_and_refuses_the_rest(tmp_path: Path) -> None:
    file = tmp_path / "profile.json"
    file.write_bytes(msgspec.json.encode(a_profile()))
    assert Profile.read(file) == a_profile()
    for changed, what in (
        ({"schema": 99}, "schema 99"),
        ({"verify": ()}, "missing"),
        ({"prefill": (PrefillTime(10, -1.0),)}, "not above 0"),
        ({"draft_prefill": {}}, "missing"),
    ):
        file.write_bytes(msgspec.json.encode(msgspec.structs.replace(a_profile(), **changed)))
        with pytest.raises(BadInputError, match=what):
            Profile.read(file)
    file.write_text("{}")
    with pytest.raises(BadInputError, match="no profile"):
        Profile.read(file)


def test_methods_it_does_not_know() -> None:
    a_profile().check_methods(["none", "peagle"])
    with pytest.raises(BadInputError, match="EAGLE-3"):
        a_profile().check_methods(["eagle3"])
