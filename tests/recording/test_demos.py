"""The demos: how they are recorded is written down, and those that have been recorded are what was written."""

import gzip
from pathlib import Path

import pytest

from peagle_cli.errors import BadInputError
from peagle_cli.recording import demos
from peagle_cli.recording.recording import load_to_show
from peagle_cli.tui.app import ReplayApp
from peagle_cli.tui.screens.demos import DemosScreen
from peagle_cli.tui.screens.replay import ReplayScreen
from tests.recordings import Recorded

MOST_BYTES = 400_000


def test_every_demo_has_a_title_and_a_line_in_the_readme() -> None:
    readme = (demos.folder() / "README.md").read_text()
    for name, script in demos.scripts().items():
        assert script.title
        assert f"`{name}`" in readme
        for ask in script.ask:
            assert len(ask.lanes) == 1 or not ask.changes


def test_the_recorded_demos_are_small_and_what_was_written() -> None:
    for demo in demos.demos():
        assert demo.path.stat().st_size < MOST_BYTES
        runs = load_to_show(demo.path).runs
        asked = demos.scripts()[demo.name].ask
        assert [run.asked.messages[-1].content for run in runs] == [ask.prompt for ask in asked]
        for run, ask in zip(runs, asked, strict=True):
            assert [f"{start.method} {start.depth}" for start in run.started.values()] == list(ask.lanes)
            assert run.whole


@pytest.fixture
def two_demos(recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "demos.toml").write_text(
        "".join(f'[{name}]\ntitle = "{name}!"\nask = []\n' for name in ("first", "not-recorded", "second"))
    )
    for name in ("first", "second"):
        (tmp_path / f"{name}.peagle.jsonl.gz").write_bytes(gzip.compress(recorded.path.read_bytes()))
    monkeypatch.setattr(demos, "folder", lambda: tmp_path)


@pytest.mark.usefixtures("two_demos")
def test_found_by_name() -> None:
    assert [demo.name for demo in demos.demos()] == ["first", "second"]
    assert demos.find("second").name == "second.peagle.jsonl.gz"
    with pytest.raises(BadInputError, match="not-recorded"):
        demos.find("not-recorded")


@pytest.mark.usefixtures("two_demos")
async def test_chosen_on_the_screen() -> None:
    app = ReplayApp(None, 1.0, 1.0, None)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("down", "enter")
        await pilot.pause()
        assert isinstance(app.screen, ReplayScreen)
        await pilot.press("q")
        await pilot.pause()
        assert isinstance(app.screen, DemosScreen)
        await pilot.press("q")
    assert app.return_value == 0
