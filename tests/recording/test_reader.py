"""What a reader makes of files: whole ones, torn ones, and ones that lie or attack."""

import gzip
import json
import random
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from peagle_cli.errors import BadInputError
from peagle_cli.recording import recording
from peagle_cli.recording.format import MAX_LINE_BYTES
from peagle_cli.recording.overview import overview
from peagle_cli.recording.reader import Reader
from peagle_cli.recording.recording import conversation
from peagle_cli.trace.events import DraftBatch
from tests.recordings import CHAT, Recorded

Object = dict[str, Any]


def read(path: Path) -> tuple[int, bool]:
    """How many lines there are behind the header, and whether the file is torn."""
    with Reader(path) as reader:
        count = sum(1 for _ in reader)
    return count, reader.torn


def test_reads_gzip(recorded: Recorded, tmp_path: Path) -> None:
    path = tmp_path / "r.peagle.jsonl.gz"
    path.write_bytes(gzip.compress(recorded.path.read_bytes()))
    assert read(path) == read(recorded.path) == (len(recorded.lines()) - 1, False)


def test_cut_anywhere_it_gives_all_whole_lines(recorded: Recorded, tmp_path: Path) -> None:
    data = recorded.path.read_bytes()
    path = tmp_path / "cut"
    for length in range(len(data) - 2048, len(data)):
        path.write_bytes(data[:length])
        whole = data[:length].count(b"\n")
        line_is_whole = data[length : length + 1] == b"\n"
        assert read(path) == ((whole, False) if line_is_whole else (whole - 1, data[length - 1 : length] != b"\n"))


def test_cut_gzip_gives_all_that_is_left(recorded: Recorded, tmp_path: Path) -> None:
    data = gzip.compress(recorded.path.read_bytes())
    path = tmp_path / "cut.gz"
    path.write_bytes(data[:-4])
    assert read(path) == (len(recorded.lines()) - 1, True)
    path.write_bytes(data[: len(data) // 2])
    count, torn = read(path)
    assert torn
    assert 0 < count < len(recorded.lines())


def test_a_cut_header_is_refused(recorded: Recorded, tmp_path: Path) -> None:
    path = tmp_path / "cut"
    for length in (0, 1, 20, len(recorded.lines()[0]) - 2):
        path.write_bytes(recorded.path.read_bytes()[:length])
        with pytest.raises(BadInputError, match="header"):
            Reader(path)


def test_a_later_schema_is_refused_and_unknown_fields_are_not(recorded: Recorded, tmp_path: Path) -> None:
    path = tmp_path / "r"
    path.write_bytes(recorded.path.read_bytes().replace(b'"schema":1', b'"schema":2', 1))
    with pytest.raises(BadInputError, match="schema 2"):
        Reader(path)
    path.write_bytes(recorded.path.read_bytes().replace(b'"step":', b'"mood":"calm","step":'))
    assert read(path) == (len(recorded.lines()) - 1, False)


def test_long_lines_are_refused_before_they_are_read(recorded: Recorded, tmp_path: Path) -> None:
    plain, zipped = tmp_path / "long", tmp_path / "long.gz"
    with plain.open("wb") as file:
        file.write(recorded.lines()[0])
        file.truncate(1 << 30)  # sparse zeros
    with gzip.open(zipped, "wb", compresslevel=1) as file:
        file.write(recorded.lines()[0])
        for _ in range(64):
            file.write(bytes(1 << 20))
    for path in (plain, zipped):
        tracemalloc.start()
        with pytest.raises(BadInputError, match=r"Line 2 .* longer than 8 MiB"):
            read(path)
        assert tracemalloc.get_traced_memory()[1] < 4 * MAX_LINE_BYTES
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_file(recorded: Recorded, tmp_path: Path) -> None:
    header, asked, started, *_ = recorded.lines()
    batch = json.loads(recorded.lines()[3])
    peaks = []
    for count in (2_000, 20_000):
        path = tmp_path / str(count)
        with path.open("wb") as file:
            file.write(header + asked + started)
            for step in range(count):
                batch["event"] |= {"step": step, "prefill": 0, "clock_s": float(step)}
                batch["at_s"] = 1e3 + step
                file.write(json.dumps(batch).encode() + b"\n")
        tracemalloc.start()
        assert overview(path).tokens == count
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]


@pytest.mark.parametrize(
    ("line", "change", "says"),
    [
        (0, lambda r: r.update(context=0), "context"),
        (0, lambda r: r.update(created="2026-01-01T00:00:00"), "time zone"),
        (0, lambda r: r["max_depths"].update(peagle=10**30), "depth"),
        (1, lambda r: r.update(lanes=["main", "main"]), "one name"),
        (2, lambda r: r["event"].update(lane="other"), "lane"),
        (2, lambda r: r["event"].update(model="another"), "model"),
        (2, lambda r: r["event"].update(reused=1000), "reused"),
        (2, lambda r: r["event"].update(prompt_ids=[-1]), "token id"),
        (2, lambda r: r["event"].update(sampling={"top_p": 0}), "top_p"),
        (3, lambda r: r.update(at_s=-1), "at_s"),
        (3, lambda r: r.update(at_s=1e300), "at_s"),
        (4, lambda r: r.update(at_s=0), "before"),
        (4, lambda r: r["event"].update(step=2), "step 1 was due"),
        (4, lambda r: r["event"].update(accepted=9), "accepts 9 of 5"),
        (4, lambda r: r["event"].update(emitted=9), "emits 9"),
        (4, lambda r: r["event"].update(emitted=-1), "emits -1"),
        (4, lambda r: r["event"].update(depth=4), "drafts 5 tokens at depth 4"),
        (4, lambda r: r["event"].update(method="none"), "plain decoding"),
        (4, lambda r: r["event"].update(clock_s=0), "backwards"),
        (4, lambda r: r["event"].update(draft_s=-1e-9), "draft_s"),
        (4, lambda r: r["event"].update(prefill=1), "prefill"),
        (4, lambda r: r["event"].update(target=r["event"]["target"][:2]), "views"),
        (4, lambda r: r["event"]["bonus"].update(id=10**400), "token id"),
        (4, lambda r: r["event"]["bonus"].update(prob=1.5), "probability"),
        (4, lambda r: r["event"]["bonus"].update(text="x" * 2000), "characters"),
        (4, lambda r: r["event"].update(step="1"), "cannot be read"),
        (4, lambda r: r["event"].update(type="Nothing"), "cannot be read"),
        (-1, lambda r: r["metrics"]["plain"].update(tokens=11), "11 as tokens, but its events come to 12"),
        (-1, lambda r: r["metrics"]["plain"].update(tokens_per_second=1e4), "10000.0 as tokens_per_second"),
        (-1, lambda r: r["metrics"].pop("plain"), "lanes that started"),
    ],
)
def test_refuses_what_cannot_be(
    recorded: Recorded, tmp_path: Path, line: int, change: Callable[[Object], Any], says: str
) -> None:
    lines = recorded.lines()
    record = json.loads(lines[line])
    change(record)
    lines[line] = json.dumps(record).encode() + b"\n"
    path = tmp_path / "r"
    path.write_bytes(b"".join(lines))
    with pytest.raises(BadInputError, match=says) as caught:
        read(path)
    assert f"Line {line % len(lines) + 1} " in caught.value.message


@pytest.mark.parametrize(
    ("order", "says"),
    [
        ([0, 2], "outside of any request"),
        ([0, 1, 3], "not started"),
        ([0, 1, 2, 2], "again"),
        ([0, 1, 2, 4], "step 1 where step 0"),
        ([0, 1, 1], "before the one above has ended"),
        ([0, -1], "none is in progress"),
        ([0, 0], "cannot be read"),
        ([1, 2], "header"),
    ],
)
def test_refuses_wrong_orders(recorded: Recorded, tmp_path: Path, order: list[int], says: str) -> None:
    lines = recorded.lines()
    path = tmp_path / "r"
    path.write_bytes(b"".join(lines[i] for i in order))
    with pytest.raises(BadInputError, match=says):
        read(path)


def test_refuses_batches_behind_the_end(recorded: Recorded, tmp_path: Path) -> None:
    lines = recorded.lines()
    finished = next(i for i, line in enumerate(lines) if b'"Finished"' in line)
    path = tmp_path / "r"
    path.write_bytes(b"".join([*lines[: finished + 1], lines[finished]]))
    with pytest.raises(BadInputError, match="has ended"):
        read(path)


def test_damage_is_refused_in_a_sentence_or_does_no_harm(recorded: Recorded, tmp_path: Path) -> None:
    """Bits flipped, bytes doubled, dropped and made strange; whatever is read still obeys the rules."""
    chance = random.Random(0)
    data = recorded.path.read_bytes()
    path = tmp_path / "r"
    strange = (b"\x1b[2J", "\u202e".encode(), b"\xff", b"\0", b"[" * 9000, b"9" * 5000, b"1e999", b"NaN", b'"', b"\n")
    for turn in range(400):
        damaged = bytearray(gzip.compress(data) if turn % 4 == 0 else data)
        at = chance.randrange(len(damaged))
        match turn % 3:
            case 0:
                damaged[at] ^= 1 << chance.randrange(8)
            case 1:
                del damaged[at : at + chance.choice((1, 30, 2000))]
            case 2:
                damaged[at:at] = chance.choice(strange)
        path.write_bytes(damaged)
        try:
            with Reader(path) as reader:
                for line in reader:
                    event = getattr(line.entry, "event", None)
                    if isinstance(event, DraftBatch):
                        assert len(event.tokens) == event.emitted <= event.accepted + 1
        except BadInputError as error:
            assert error.message
            assert "\x1b" not in error.message


def test_overview(recorded: Recorded) -> None:
    seen = overview(recorded.path)
    assert seen.settings == (("peagle", 5), ("peagle", 4), ("none", 0))
    assert (seen.replies, seen.tokens, seen.prompt) == (3, 30 + 12 + 12, "Name three rivers.")
    assert seen.complete
    assert seen.tokens_per_second is not None


def test_conversation_is_what_the_last_request_in_one_lane_came_to(recorded: Recorded, tmp_path: Path) -> None:
    *before, answer = conversation(recorded.path)
    assert tuple(before) == CHAT.messages
    assert answer.content == "".join(event.text for event in recorded.told[0] if isinstance(event, DraftBatch))
    lines = recorded.lines()
    unanswered, race = tmp_path / "unanswered", tmp_path / "race"
    unanswered.write_bytes(b"".join(lines[:3]))
    assert conversation(unanswered) == CHAT.messages[:-1]
    begin = next(i for i, line in enumerate(lines) if b'"request"' in line and i > 1)
    race.write_bytes(b"".join([lines[0], *lines[begin:]]))
    with pytest.raises(BadInputError, match="no conversation"):
        conversation(race)


def test_what_is_too_long_to_be_shown_is_refused(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadInputError, match="no more than 10"):
        recording.load_to_show(recorded.path, 10)
    monkeypatch.setattr(recording, "MAX_LOADED_BYTES", 1000)
    with pytest.raises(BadInputError, match="can be shown"):
        recording.Recording.load(recorded.path)
