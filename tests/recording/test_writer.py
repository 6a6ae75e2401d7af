"""What is on disk, when, and for whom."""

import os
import signal
import stat
from pathlib import Path

import msgspec
import pytest

from peagle_cli import locations
from peagle_cli.engine.process import Opening
from peagle_cli.engine.protocol import EngineSpec, LaneSetting, Request
from peagle_cli.engine.recorded import RecordedEngine
from peagle_cli.engine.torch.engine import TorchEngine
from peagle_cli.errors import BadInputError
from peagle_cli.models.progress import unheard
from peagle_cli.recording import sessions
from peagle_cli.recording.format import Asked, End, Happened
from peagle_cli.recording.reader import Reader
from peagle_cli.trace.events import Failed, Message, Sampling
from peagle_cli.trace.metrics import Metrics
from tests.recordings import CHAT, RACE, Recorded

SHORT = Request((Message("user", "Hi"),), (LaneSetting("main", "peagle", 3),), Sampling(), max_tokens=8)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PEAGLE_DATA_DIR", str(tmp_path))
    return locations.sessions()


def test_holds_every_request_and_event(recorded: Recorded) -> None:
    with Reader(recorded.path) as reader:
        entries = [line.entry for line in reader]
    asked = [entry for entry in entries if isinstance(entry, Asked)]
    assert [entry.messages for entry in asked] == [CHAT.messages, RACE.messages]
    assert [entry.lanes for entry in asked] == [("main",), ("P-EAGLE", "plain")]
    happened = [entry.event for entry in entries if isinstance(entry, Happened)]
    assert happened == [event for told in recorded.told for event in told]
    ends = [entry for entry in entries if isinstance(entry, End)]
    for end, told in zip(ends, recorded.told, strict=True):
        for lane, metrics in end.metrics.items():
            live = Metrics(event for event in told if event.lane == lane).summary()
            assert metrics == msgspec.json.decode(msgspec.json.encode(live))


def test_every_event_is_on_disk_when_it_is_seen(tiny_engine: TorchEngine, folder: Path) -> None:
    engine = RecordedEngine(tiny_engine, pytest.fail)
    assert not folder.exists()
    for count, _ in enumerate(engine.run(SHORT), 1):
        with Reader(sessions.find("last")) as reader:
            assert sum(isinstance(line.entry, Happened) for line in reader) == count


def test_an_abandoned_reply_is_ended(tiny_engine: TorchEngine, folder: Path) -> None:
    engine = RecordedEngine(tiny_engine, pytest.fail)
    events = engine.run(SHORT)
    next(events), next(events)
    events.close()
    list(engine.run(SHORT))
    with Reader(sessions.find("last")) as reader:
        kinds = [type(line.entry) for line in reader]
    assert kinds[:5] == [Asked, Happened, Happened, End, Asked]
    assert kinds[-1] is End


def test_a_refused_request_leaves_no_trace(tiny_engine: TorchEngine, folder: Path) -> None:
    with pytest.raises(BadInputError):
        list(RecordedEngine(tiny_engine, pytest.fail).run(msgspec.structs.replace(SHORT, max_tokens=0)))
    assert not folder.exists()


def test_an_engine_that_is_gone_before_the_reply_is_told_and_leaves_no_trace(
    tiny_spec: EngineSpec, folder: Path
) -> None:
    process = Opening(tiny_spec).wait(unheard)
    engine = RecordedEngine(process, pytest.fail)
    os.kill(process.pid, signal.SIGKILL)
    assert [type(event) for event in engine.run(SHORT)] == [Failed]
    engine.close()
    assert not folder.exists()


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
def test_is_private(tiny_engine: TorchEngine, folder: Path) -> None:
    list(RecordedEngine(tiny_engine, pytest.fail).run(SHORT))
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(sessions.find("last").stat().st_mode) == 0o600


def test_the_reply_goes_on_when_it_cannot_be_recorded(tiny_engine: TorchEngine, folder: Path) -> None:
    folder.parent.mkdir(exist_ok=True)
    folder.write_text("a file where the folder should be")
    said: list[str] = []
    events = list(RecordedEngine(tiny_engine, said.append).run(SHORT))
    assert len(events) > 2
    assert len(said) == 1
    assert "no longer recorded" in said[0]


def test_the_oldest_make_room(folder: Path) -> None:
    folder.mkdir()
    paths = [folder / f"{i}.peagle.jsonl" for i in range(4)]
    for age, path in enumerate(paths):
        path.write_bytes(bytes(100))
        os.utime(path, (age, age))
    sessions.make_room(keep=paths[0], limit=250)
    assert sessions.recordings() == [paths[0], paths[3]]


def test_finding(folder: Path, tmp_path: Path) -> None:
    folder.mkdir()
    for age, name in enumerate(("20260101-1", "20260101-12", "20260102-1")):
        path = folder / f"{name}.peagle.jsonl"
        path.touch()
        os.utime(path, (age, age))
    assert sessions.find("last").name == "20260102-1.peagle.jsonl"
    assert sessions.find("20260101-1").name == "20260101-1.peagle.jsonl"
    assert sessions.find("0102").name == "20260102-1.peagle.jsonl"
    with pytest.raises(BadInputError, match="3 recordings"):
        sessions.find("2026")
    with pytest.raises(BadInputError, match="no recording"):
        sessions.find("../" + tmp_path.name)
    with pytest.raises(BadInputError, match="no recording"):
        sessions.find("x" * 5000)
