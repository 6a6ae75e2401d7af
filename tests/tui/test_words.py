"""What the chat can do with words, driven by keys."""

from functools import partial
from pathlib import Path

import pytest
from textual.events import Key, Paste
from textual.widgets import Input, Markdown, OptionList

from peagle_cli.errors import BadInputError
from peagle_cli.tui import editor
from peagle_cli.tui.lesson import Lesson, bundled
from peagle_cli.tui.screens.copy import CopyScreen
from peagle_cli.tui.screens.tour import TourScreen
from peagle_cli.tui.session import Phase
from peagle_cli.tui.tour import LINES, pages
from peagle_cli.tui.widgets.answer import AnswerView
from peagle_cli.tui.widgets.completions import Completions
from peagle_cli.tui.widgets.search import SearchLine
from tests.tui.batches import batch
from tests.tui.driving import Driver, chat

ANSWER = """Two ways:

| way | cost |
|-----|------|
| one | O(n) |

```python
def one():
\treturn 1
```

See [this](https://example.com/\x1b[2J).

```sh
one
```
"""


async def answered(driver: Driver, answer: str = ANSWER) -> None:
    """Let the last reply be another, which the tiny model would never give."""
    await driver.ready()
    reply = driver.screen._talk.conversation.reply
    assert reply is not None
    reply._words = [answer]


@pytest.mark.usefixtures("ready")
async def test_reads_an_answer_as_markdown_also_while_it_grows() -> None:
    async with chat(prompt="Hello", max_tokens=3000) as driver:
        await driver.until(lambda: driver.phase is Phase.REPLYING)
        driver.view.focus()
        await driver.press("v")
        assert driver.screen.query_one(AnswerView).display and not driver.view.display
        document = driver.screen.query_one(Markdown)
        await driver.until(lambda: len(document.source) > 20)
        length = len(document.source)
        await driver.until(lambda: len(document.source) > length)
        await driver.press("escape")
        await driver.ready()
        await driver.until(lambda: document.source.endswith(driver.screen._talk.conversation.exchanges[0].answer[-5:]))
        await driver.press("tab", "v")
        assert driver.view.display and driver.view.has_focus
        await driver.press("v")
        driver.screen.action_clear()
        assert driver.view.display
        driver.screen.action_view()
        assert driver.view.display and driver.says("no answer yet")


@pytest.mark.usefixtures("ready")
async def test_an_answer_opens_nothing_and_does_nothing_to_the_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with chat(prompt="Hello", max_tokens=4) as driver:
        await answered(driver)
        await driver.press("tab", "v")
        await driver.until(lambda: driver.says("O(n)"))
        assert "\x1b" not in driver.words()
        opened: list[str] = []
        monkeypatch.setattr(driver.app, "open_url", lambda url, new_tab=True: opened.extend([url]))
        document = driver.screen.query_one(Markdown)
        document.post_message(Markdown.LinkClicked(document, "https://example.com"))
        await driver.until(lambda: driver.says("leads to https://example.com"))
        assert opened == []


@pytest.mark.usefixtures("ready")
async def test_copies_an_answer_and_a_block_of_code() -> None:
    async with chat(prompt="Hello", max_tokens=4) as driver:
        await driver.type("/copy code")
        await driver.press("enter")
        await answered(driver)
        await driver.press("tab", "y")
        assert driver.app.clipboard == ANSWER.replace("\x1b", "␛")
        assert driver.says("Copied the answer")
        await driver.press("c")
        assert isinstance(driver.app.screen, CopyScreen)
        assert driver.app.screen.query_one(OptionList).option_count == 2
        await driver.press("up", "enter")
        await driver.until(lambda: driver.says("Copied a block of code: python, 2 lines"))
        assert driver.app.clipboard == "def one():\n\treturn 1"


@pytest.mark.usefixtures("ready")
async def test_searches_and_comes_back() -> None:
    async with chat(prompt="needle " + "hay " * 300 + "Needle", max_tokens=4, size=(60, 20)) as driver:
        await driver.ready()
        bottom = driver.view.scroll_y
        assert bottom > 0 and driver.view.following
        await driver.press("ctrl+f")
        driver.screen.query_one(Input).value = "needle"
        await driver.until(lambda: driver.says("2 of 2"))
        await driver.press("down")
        assert driver.says("1 of 2") and not driver.view.following
        await driver.press("escape")
        assert not driver.screen.query_one(SearchLine).display
        assert driver.view.scroll_y == bottom and driver.view.following
        await driver.press("ctrl+f")
        driver.screen.query_one(Input).value = "Needle"
        await driver.until(lambda: driver.says("1 of 1"))
        await driver.press("enter", "n")
        assert driver.view.has_focus and driver.says("1 of 1")
        await driver.press("escape", "n")
        assert driver.prompt.text == "n"


@pytest.mark.usefixtures("ready")
async def test_a_list_above_the_prompt_completes() -> None:
    async with chat() as driver:
        await driver.ready()
        listed = driver.screen.query_one(Completions)
        await driver.type("/re")
        await driver.until(lambda: listed.display)
        assert driver.says("ask the last prompt again")
        await driver.press("down", "tab")
        assert driver.prompt.text == "/retry"
        await driver.press("escape")
        await driver.until(lambda: not listed.display)
        driver.prompt.replace_text("")
        await driver.type("/dep")
        await driver.press("enter")
        assert driver.prompt.text == "/depth "
        await driver.press("up", "enter")
        await driver.pilot.pause()
        wanted = driver.screen._talk.conversation.wanted
        assert wanted is not None and wanted.depth == driver.screen.deepest


@pytest.mark.usefixtures("ready")
async def test_odd_text_in_the_prompt_is_shown_and_kept() -> None:
    odd = "שלום עולם\r\n\x1b[2J e\u0301 👩\u200d🚀 \u202e\ttab"
    async with chat(max_tokens=4) as driver:
        await driver.ready()
        driver.app.post_message(Paste(odd))
        await driver.until(lambda: driver.says("עולם"))
        assert driver.prompt.text == "שלום עולם\n␛[2J e\u0301 👩\u200d🚀 �\ttab"
        assert "\x1b" not in driver.words()
        await driver.press("enter")
        await driver.until(lambda: driver.says("4 tokens"))
        await driver.press("up")
        assert driver.prompt.text.startswith("שלום")
    async with chat() as driver:
        await driver.press("up")
        assert driver.prompt.text.startswith("שלום")
    async with chat(record=False) as driver:
        await driver.press("up")
        assert driver.prompt.text == ""


@pytest.mark.usefixtures("ready")
async def test_the_tour_opens_once_and_gives_way_to_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEAGLE_DATA_DIR", str(tmp_path))
    async with chat(size=(60, 20)) as driver:
        await driver.until(lambda: isinstance(driver.app.screen, TourScreen))
        for title in ("A step", "K passes, or one", "The free token", "Why not deeper?"):
            await driver.until(partial(driver.says, title))
            await driver.press("enter")
        await driver.until(lambda: driver.app.screen is driver.screen)
    async with chat() as driver:
        await driver.ready()
        assert driver.app.screen is driver.screen
        await driver.press("f1", "t")
        await driver.until(lambda: isinstance(driver.app.screen, TourScreen))
        for key in "Why":  # at once, as by a fast hand
            driver.app.post_message(Key(key, key))
        await driver.until(lambda: driver.prompt.text == "Why")


def test_every_page_fits_the_smallest_terminal() -> None:
    wide = [f" 漢字{i}" for i in range(12)]
    deep = Lesson("this session", [batch(wide, 3, " 字", step=i) for i in range(3)])
    right = Lesson("this session", [batch(["a"], 1, "b"), batch("", 0, "c"), batch(["\x1b", ""], 0, "")])
    for lesson in (bundled(), deep, right):
        for page in pages(lesson, 56, str):
            assert len(page.lines) <= LINES
            text = "".join(text for line in page.lines for text, _ in line)
            assert "\x1b" not in text


def test_the_tour_tells_what_was_measured() -> None:
    lesson = Lesson("this session", [batch("abc", 1, "x"), batch("abc", 3, "y"), batch("a", 0, "z")])
    *_, deeper = pages(lesson, 56, str)
    assert "3 drafts of" in " ".join(text for line in deeper.lines for text, _ in line)
    assert [round(rate, 2) for rate in lesson.acceptance("peagle")] == [0.67, 0.5, 0.5]
    assert lesson.predictions("eagle3") == []
    measured = lesson.predictions("peagle")
    assert [prediction.depth for prediction in measured] == [0, 1, 2, 3]


def test_writes_in_an_editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "editor"
    script.write_text('#!/bin/sh\nstat -c %a "$(dirname "$2")" > "$1"\nprintf "and more\\n" >> "$2"\n')
    script.chmod(0o755)
    monkeypatch.setenv("VISUAL", f"'{script}' '{tmp_path / 'seen'}'")
    assert editor.edit("first\n") == "first\nand more"
    assert (tmp_path / "seen").read_text().strip() == "700"
    monkeypatch.delenv("EDITOR", raising=False)
    for named in ("", "false", "/nowhere/editor", "'"):
        monkeypatch.setenv("VISUAL", named)
        with pytest.raises(BadInputError, match="editor"):
            editor.edit("kept")
