"""The exported page, in a real browser: it replays, it can be inspected, and it cannot be broken into."""

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from peagle_cli.recording.export.as_html import html_of
from peagle_cli.trace.events import DraftBatch
from peagle_cli.trace.metrics import Metrics
from tests import browser
from tests.recordings import Recorded

pytestmark = pytest.mark.skipif(
    browser.CHROMIUM is None, reason="Chromium is not installed (Debian's package is chromium)"
)

SHOWN = "[...document.querySelectorAll('.reply')[{lane}].querySelectorAll('{kinds}')].filter(s => !s.hidden)"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[browser.Page]:
    with browser.page(tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.fixture(scope="module")
def address(recorded: Recorded, tmp_path_factory: pytest.TempPathFactory) -> str:
    return write(recorded.path, tmp_path_factory.mktemp("page"))


def write(recording: Path, folder: Path) -> str:
    file = folder / "page.html"
    file.write_text("".join(html_of(recording)), encoding="utf-8")
    return file.as_uri()


def texts(page: browser.Page, kinds: str, lane: int = 0) -> list[str]:
    return list(page.run(SHOWN.format(lane=lane, kinds=kinds) + ".map(s => s.textContent)"))


def test_shows_every_token_as_what_it_is(page: browser.Page, address: str, recorded: Recorded) -> None:
    page.open(address)
    batches = [event for event in recorded.load().runs[0] if isinstance(event, DraftBatch)]
    accepted = [token.text for batch in batches for token in batch.tokens[: batch.accepted] if token.text]
    assert [len(text) for text in texts(page, ".accepted")] == [len(text) for text in accepted]
    drafts = sum(bool(token.text) for batch in batches for token in batch.rejected)
    assert len(texts(page, ".rejected, .discarded")) == drafts
    figures = page.run("document.querySelectorAll('.figures')[0].textContent")
    speed = Metrics(recorded.told[0]).tokens_per_second
    assert f"30 tokens · {speed:.1f} tokens/s" in figures


def test_steps_both_ways_and_seeks(page: browser.Page, address: str, recorded: Recorded) -> None:
    page.open(f"{address}#frame=0")
    assert texts(page, "span") == []
    seen = [texts(page, "span")]
    for _ in range(5):
        page.run("document.getElementById('forward').click()")
        seen.append(texts(page, "span"))
    assert all(len(earlier) <= len(later) for earlier, later in pairwise(seen))
    for _ in range(4):
        page.run("document.getElementById('back').click()")
    assert texts(page, "span") == seen[1]
    page.run("document.getElementById('rejection').click()")
    assert texts(page, ".rejected")
    page.run("{ const bar = document.getElementById('seek'); bar.value = 6; bar.dispatchEvent(new Event('input')) }")
    assert page.run("document.getElementById('clock').textContent").startswith("6 of ")


def test_plays_to_the_end(page: browser.Page, address: str, recorded: Recorded) -> None:
    page.open(f"{address}#frame=0")
    page.run(
        """(async () => {
            document.getElementById('speed').value = 4;
            const play = document.getElementById('play');
            play.click();
            while (play.textContent === 'pause') await new Promise(done => setTimeout(done, 20));
        })()"""
    )
    clock = page.run("document.getElementById('clock').textContent")
    frames = sum(map(len, recorded.told))
    assert clock.startswith(f"{frames} of {frames}")


def test_inspects_a_token(page: browser.Page, address: str, recorded: Recorded) -> None:
    page.open(address)
    page.run("document.querySelector('.reply .rejected').click()")
    inspector = page.run("document.getElementById('inspector').textContent")
    assert "P-EAGLE, depth 5" in inspector
    assert "✗ rejected" in inspector
    assert "Drafter's candidates at position 1" in inspector
    assert "Target's candidates at position 1" in inspector


def test_hostile_text_stays_text(page: browser.Page, recorded: Recorded, tmp_path: Path) -> None:
    script = "document.title='owned'"
    hostile = f"</script><script>{script}</script><img src=x onerror={script}><!--\x1b[2J\u202e"
    lines = [json.loads(line) for line in recorded.lines()]
    for line in lines:
        for message in line.get("messages", ()):
            message["content"] = hostile
        event = line.get("event", {})
        for token in (*event.get("drafted", ()), event.get("bonus", {})):
            token["text"] = hostile
    path = tmp_path / "hostile"
    path.write_text("".join(json.dumps(line).replace('"main"', json.dumps("<b>main")) + "\n" for line in lines))
    page.messages.clear()
    page.requests.clear()
    page.open(write(path, tmp_path))
    assert "owned" not in page.run("document.title")
    assert page.run("document.querySelectorAll('img').length") == 0
    assert page.run("document.scripts.length") == 2
    asked = page.run("document.querySelector('.asked').textContent")
    assert asked.startswith("</script><script>")
    assert "\x1b" not in asked
    assert "\u202e" not in asked
    assert page.messages == []
    assert [request for request in page.requests if not request.startswith(("file:", "about:"))] == []


def test_nothing_but_its_own_script_may_run(page: browser.Page, address: str) -> None:
    page.open(address)
    page.run(
        "{ const s = document.createElement('script'); s.text = \"document.title = 'owned'\"; document.body.append(s) }"
    )
    assert page.run("document.title") != "1"
    assert page.run("fetch('https://example.com').then(() => 'sent', () => 'refused')") == "refused"
