"""The prompts of earlier sessions."""

import os
import stat
from pathlib import Path

import pytest

from peagle_cli.tui.history import MAX_BYTES, MAX_KEPT, PromptHistory


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "prompts.jsonl"


def prompts(history: PromptHistory) -> list[str]:
    return [history[i] for i in range(len(history))]


def test_sessions_find_the_prompts_of_those_before(path: Path) -> None:
    first, at_once = PromptHistory(path), PromptHistory(path)
    for prompt in ("one", "one", "two\nlines"):
        first.add(prompt)
    at_once.add("meanwhile")
    assert prompts(PromptHistory(path)) == ["one", "two\nlines", "meanwhile"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_begins_with_what_is_written() -> None:
    history = PromptHistory()
    for prompt in ("say a", "tell b", "say c"):
        history.add(prompt)
    assert history.before(3, "say") == 2
    assert history.before(2, "say") == 0
    assert history.before(0) is None
    assert history.after(0, "say") == 2
    assert history.after(2) is None


def test_the_file_does_not_grow_for_ever(path: Path) -> None:
    history = PromptHistory(path)
    for i in range(2 * MAX_KEPT + 1):
        history.add(str(i))
    assert len(PromptHistory(path)) == MAX_KEPT
    assert len(path.read_bytes().splitlines()) == MAX_KEPT
    assert prompts(PromptHistory(path))[-1] == str(2 * MAX_KEPT)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    history.add("x" * (MAX_BYTES + 1))
    assert len(prompts(history)[-1]) > MAX_BYTES
    assert path.stat().st_size < MAX_BYTES


def test_damage_costs_no_more_than_the_damaged_line(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b'"good"\n{"torn": \n\xff\xfe\n"\\u001b[2J"\n')
    assert prompts(PromptHistory(path)) == ["good", "␛[2J"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_place_that_cannot_be_written_is_told_once(path: Path) -> None:
    path.parent.mkdir(mode=0o500)
    history = PromptHistory(path)
    history.add("one")
    assert "cannot be kept" in history.trouble
    assert prompts(history) == ["one"]


def test_text_that_is_no_unicode_is_no_trouble(path: Path) -> None:
    PromptHistory(path).add("\ud800")
    assert prompts(PromptHistory(path)) == ["?"]
