"""Recording, listing, continuing, replaying and exporting, as users do it."""

import csv
import io
import json
from pathlib import Path

import pytest

from tests.cli.program import PEAGLE, Program
from tests.cli.test_chat_on_a_terminal import LEAVE_ALTERNATE_SCREEN, read_to_end, terminal
from tests.recordings import Recorded


def chat(program: Program, options: list[str], prompt: str, *more: str) -> str:
    done = program.run("chat", prompt, *options, "--max-tokens", "8", *more)
    assert done.returncode == 0, done.stderr
    return done.stdout


def listed(program: Program) -> list[dict[str, object]]:
    sessions: list[dict[str, object]] = json.loads(program.run("sessions", "--output", "json").stdout)
    return sessions


@pytest.fixture
def kept(program: Program, recorded: Recorded) -> str:
    """The recording in the program's own folder; its name."""
    folder = program.places / "data" / "sessions"
    folder.mkdir(parents=True)
    (folder / "mine.peagle.jsonl").write_bytes(recorded.path.read_bytes())
    return "mine"


def test_a_chat_is_recorded_listed_continued_and_replayed(program: Program, tiny_options: list[str]) -> None:
    first = json.loads(chat(program, tiny_options, "One", "--output", "json"))
    (session,) = listed(program)
    overview = session["overview"]
    assert isinstance(overview, dict)
    assert (overview["prompt"], overview["tokens"], overview["complete"]) == ("One", first["metrics"]["tokens"], True)
    assert overview["tokens_per_second"] == pytest.approx(first["metrics"]["tokens_per_second"])
    exported = json.loads(program.run("export", "last", "--to", "json").stdout)
    assert exported["replies"][0]["metrics"] == first["metrics"]

    told = chat(program, tiny_options, "Two", "--output", "jsonl", "--resume", "last")
    assert len(listed(program)) == 2
    replayed = program.run("replay", "last", "--max-idle", "0", "--output", "jsonl")
    assert replayed.stdout == told
    header, request, *_ = Path(str(listed(program)[1]["path"])).read_text().splitlines()
    assert json.loads(header)["continues"] == session["name"]
    said = [message["content"] for message in json.loads(request)["messages"]]
    assert said == ["One", first["text"], "Two"]


def test_a_chat_that_is_not_to_be_recorded_is_not(program: Program, tiny_options: list[str]) -> None:
    chat(program, tiny_options, "One", "--no-record")
    program.config.parent.mkdir()
    program.config.write_text("record = false\n")
    chat(program, tiny_options, "One")
    done = program.run("sessions")
    assert (done.returncode, done.stdout) == (0, "")
    assert "No chats are recorded" in done.stderr


def test_lists_what_cannot_be_read_with_the_reason(program: Program, kept: str) -> None:
    (program.places / "data" / "sessions" / "bad.peagle.jsonl").write_bytes(b"\x1b[2J{")
    table = program.run("sessions").stdout
    assert "Name three rivers." in table
    assert "does not begin with a whole header" in table
    assert "\x1b" not in table


def test_replays_as_text(program: Program, kept: str) -> None:
    done = program.run("replay", kept, "--max-idle", "0")
    assert done.returncode == 0
    assert done.stdout.startswith("› Name three rivers.\n\n")
    assert "\x1b" not in done.stdout
    marked, *figures = done.stderr.splitlines()
    assert marked.startswith("REPLAY · ")
    assert len(figures) == 3


def test_says_that_a_recording_is_torn(program: Program, recorded: Recorded, tmp_path: Path) -> None:
    path = tmp_path / "torn"
    path.write_bytes(recorded.path.read_bytes()[:-10])
    assert "cut off" in program.run("replay", str(path), "--max-idle", "0").stderr


def test_refuses_in_one_sentence(program: Program, kept: str, tmp_path: Path) -> None:
    changed = tmp_path / "changed"
    original = (program.places / "data" / "sessions" / f"{kept}.peagle.jsonl").read_bytes()
    changed.write_bytes(original.replace(b'"tokens":12', b'"tokens":13'))
    for arguments in (("replay", "nothing"), ("replay", str(changed)), ("export", str(changed), "--to", "csv")):
        done = program.run(*arguments)
        assert done.returncode == 2
        assert done.stderr.startswith("Error: ")
        assert "Traceback" not in done.stderr


def test_exports_to_a_file_as_a_whole_or_not_at_all(program: Program, kept: str, tmp_path: Path) -> None:
    out = tmp_path / "steps.csv"
    assert program.run("export", kept, "--to", "csv", "--out", str(out)).returncode == 0
    rows = list(csv.DictReader(io.StringIO(out.read_text())))
    assert {row["lane"] for row in rows} == {"main", "P-EAGLE", "plain"}
    lines = (program.places / "data" / "sessions" / f"{kept}.peagle.jsonl").read_bytes().splitlines(keepends=True)
    broken = tmp_path / "broken"
    broken.write_bytes(b"".join(lines[:4]) + b"x\n")
    before = out.read_bytes()
    assert program.run("export", str(broken), "--to", "csv", "--out", str(out)).returncode == 2
    assert out.read_bytes() == before
    assert not list(tmp_path.glob("*.part"))


def test_a_killed_chat_loses_no_whole_line(program: Program, tiny_options: list[str]) -> None:
    with program.started("chat", "Go on", *tiny_options, "--max-tokens", "3000", "--output", "jsonl") as process:
        assert process.stdout
        told = [process.stdout.readline() for _ in range(20)]
        process.kill()
        process.wait()
    (session,) = listed(program)
    overview = session["overview"]
    assert isinstance(overview, dict)
    assert overview["complete"] is False
    assert "(broken off)" in program.run("sessions").stdout
    replayed = program.run("replay", "last", "--max-idle", "0", "--output", "jsonl").stdout.encode().splitlines(True)
    assert replayed[:20] == told
    assert json.loads(replayed[-1])["message"] == "The recording ends here, within the reply."


def test_replays_on_a_terminal(program: Program, kept: str) -> None:
    with terminal(program, PEAGLE, "replay", kept) as peagle:
        peagle.expect("REPLAY")
        peagle.send("q")
        peagle.expect_exact(LEAVE_ALTERNATE_SCREEN)
        assert read_to_end(peagle)[1] == 0
