"""The race behind its screen and on it, run by the tiny model in this process; its drafters are never right."""

import itertools
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from textual.pilot import Pilot
from textual.screen import Screen

from peagle_cli.engine.contest import Contest, settings_for, sweep_requests
from peagle_cli.engine.protocol import Engine, EngineInfo, EngineSpec, Request
from peagle_cli.engine.torch.engine import TorchEngine
from peagle_cli.errors import BadInputError, PeagleError
from peagle_cli.models.progress import OnProgress
from peagle_cli.prompts import Prompt
from peagle_cli.trace.events import DraftBatch, Event, Sampling
from peagle_cli.trace.rounds import PLAIN
from peagle_cli.tui import session
from peagle_cli.tui.app import ChatApp, RaceApp
from peagle_cli.tui.options import ChatOptions
from peagle_cli.tui.race import PhotoFinish, Race, Stage
from peagle_cli.tui.screens.chat import ChatScreen
from peagle_cli.tui.screens.race import RaceScreen
from peagle_cli.tui.session import Phase
from peagle_cli.tui.widgets.header import ChatHeader
from peagle_cli.tui.widgets.lane import LanePane
from tests.tui.batches import INFO

SIZES = [(60, 20), (80, 24), (120, 36), (200, 60)]
PROMPTS = (Prompt(("Hello",), "one"), Prompt(("Good day",), "two"))


def a_contest(info: EngineInfo, prompts: tuple[Prompt, ...] = PROMPTS, max_tokens: int = 16) -> Contest:
    return Contest(settings_for(info.drafters, (), (2, 4), baseline=True), prompts, 1, Sampling(), max_tokens)


@pytest.fixture(scope="module")
def engine(tiny_spec: EngineSpec) -> TorchEngine:
    return TorchEngine.open(tiny_spec)


def run(race: Race, engine: Engine) -> list[Stage]:
    """Run the race to its end; the stages it went through."""
    stages: list[Stage] = []
    while request := race.next_request():
        stages.append(race.stage)
        for event in engine.run(request):
            for command in race.add(event):
                engine.control(command)
    return stages


def test_warms_up_races_and_measures(engine: TorchEngine) -> None:
    race = Race(a_contest(engine.info), engine.info)
    stages = run(race, engine)
    assert [stages.count(stage) for stage in (Stage.WARMING, Stage.RACING, Stage.MEASURING)] == [1, 2, 22]
    assert race.stage is Stage.DONE
    assert race.round == 2
    assert race.report is not None
    assert race.report.prompts == 2
    assert race.report.lossless.verdict == "identical"
    assert race.report.advice is not None
    assert len(race.report.advice.predictions) == 21
    assert all(prediction.mean_acceptance_length == 1 for prediction in race.report.advice.predictions)
    assert all(runner.finished and runner.reply.metrics.tokens == 16 for runner in race.runners)


def test_standings_are_the_reports_speeds_the_fastest_first(engine: TorchEngine) -> None:
    race = Race(a_contest(engine.info), engine.info)
    assert [standing.runner for standing in race.standings()] == race.runners, "no speeds yet: in their own order"
    run(race, engine)
    assert race.report is not None
    reported = {(lane.method, lane.depth): lane for lane in race.report.lanes}
    standings = race.standings()
    speeds = [standing.tokens_per_second or 0 for standing in standings]
    assert speeds == sorted(speeds, reverse=True)
    for standing in standings:
        lane = reported[standing.runner.setting]
        assert standing.tokens_per_second == lane.tokens_per_second
        assert standing.over_plain == lane.speedup
        assert standing.over_eagle3 == lane.speedup_over_eagle3


def test_a_round_that_was_stopped_does_not_count(engine: TorchEngine) -> None:
    race = Race(a_contest(engine.info), engine.info)
    for _ in range(2):
        request = race.next_request()
        assert request is not None
        for event in engine.run(request):
            race.add(event)
    race.next_request()  # completes the first round and begins the second
    race.cancel()
    assert race.stage is Stage.DONE
    assert race.next_request() is None
    assert race.report is not None
    assert race.report.prompts == 1


def test_stopped_in_its_first_round_it_has_no_report() -> None:
    race = Race(a_contest(INFO), INFO)
    race.next_request()
    race.cancel()
    assert race.report is None
    assert race.last_round is None


def test_the_photo_finish_shows_each_token_at_its_time(engine: TorchEngine) -> None:
    race = Race(a_contest(engine.info, PROMPTS[:1]), engine.info)
    run(race, engine)
    assert race.last_round is not None
    finish = PhotoFinish(race, race.last_round)
    assert finish.seconds == max(r.metrics.elapsed_s for r in race.last_round.replies.values())
    half = finish.seconds / 2
    assert finish.show(half)
    for runner in race.runners:
        batches = race.last_round.replies[runner.setting].batches
        assert runner.reply.metrics.tokens == sum(b.emitted for b in batches if b.clock_s <= half)
    assert not finish.show(finish.seconds)
    assert all(runner.finished for runner in race.runners)


class Ready:
    """An engine that has been opened before."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def wait(self, on_progress: OnProgress) -> Engine:
        return self._engine

    def cancel(self) -> None:
        pass


class Driver:
    """A race on its screen."""

    def __init__(self, app: RaceApp, pilot: Pilot[Any]) -> None:
        self.app = app
        self.pilot = pilot

    @property
    def screen(self) -> RaceScreen:
        screen = self.app.screen_stack[0]
        assert isinstance(screen, RaceScreen)
        return screen

    @property
    def race(self) -> Race:
        assert self.screen._race is not None
        return self.screen._race

    async def until(self, stage: Stage) -> None:
        for _ in range(2000):
            await self.pilot.pause(0.02)
            if (
                self.screen._race
                and self.race.stage is stage
                and (stage is not Stage.DONE or self.screen._session.phase is Phase.READY)
            ):
                return
        raise AssertionError(f"waited in vain for {stage}")

    def shown(self) -> str:
        return "\n".join(
            "".join(segment.text for segment in strip) for strip in self.screen._compositor.render_strips()
        )


@asynccontextmanager
async def on_screen(
    engine: TorchEngine, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int], **contest: Any
) -> AsyncIterator[Driver]:
    monkeypatch.setattr(session, "start_engine", lambda spec: Ready(engine))
    monkeypatch.setattr(engine, "close", lambda: None)
    app = RaceApp(EngineSpec(), lambda info: a_contest(info, **contest), None, record=False)
    async with app.run_test(size=size) as pilot:
        yield Driver(app, pilot)


def test_where_lanes_do_not_take_turns_each_method_is_measured_to_its_end_before_the_next() -> None:
    info = msgspec.structs.replace(INFO, takes_turns=False)
    requests = list(sweep_requests(a_contest(info), info))
    methods = [lane.method for request in requests for lane in request.lanes]
    assert [method for method, _ in itertools.groupby(methods)] == ["none", "eagle3", "peagle"]
    depths = [lane.depth for request in requests for lane in request.lanes if lane.method == "eagle3"]
    assert depths == [1, 2, 3, 4, 4, 3, 2, 1]


async def test_a_race_that_fails_asks_for_nothing_more(engine: TorchEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Request] = []

    def refused(request: Request) -> Iterator[Event]:
        asked.append(request)
        raise PeagleError("The GPU has too little memory for this model.", "Its log is elsewhere.")

    monkeypatch.setattr(engine, "run", refused)
    async with on_screen(engine, monkeypatch, (80, 24)) as driver:
        await driver.until(Stage.DONE)
        await driver.pilot.pause(0.2)
        assert "too little memory for this model. Its log is elsewhere." in driver.shown()
        assert len(asked) == 1
        await driver.pilot.press("escape")
        await driver.pilot.pause(0.1)
    assert driver.app.return_value is None


async def test_a_race_that_failed_can_be_run_again(engine: TorchEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    run, asked = engine.run, list[Request]()

    def refused_once(request: Request) -> Iterator[Event]:
        asked.append(request)
        if len(asked) == 1:
            raise PeagleError("The GPU has too little memory for this model.", "Its log is elsewhere.")
        return run(request)

    monkeypatch.setattr(engine, "run", refused_once)
    async with on_screen(engine, monkeypatch, (80, 24), prompts=PROMPTS[:1], max_tokens=300) as driver:
        await driver.until(Stage.DONE)
        assert "too little memory" in driver.shown()
        await driver.pilot.press("n")
        await driver.until(Stage.RACING)
        assert "too little memory" not in driver.shown()
        await driver.pilot.press("escape")
        await driver.until(Stage.DONE)


@pytest.mark.parametrize("size", SIZES)
async def test_every_lane_verdict_and_advice_are_in_view(
    engine: TorchEngine, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    async with on_screen(engine, monkeypatch, size, prompts=PROMPTS[:1]) as driver:
        await driver.until(Stage.DONE)
        await driver.pilot.pause(0.2)
        shown = driver.shown()
        for name in ("plain", "EAGLE-3 2", "EAGLE-3 4", "P-EAGLE 2", "P-EAGLE 4", "wins", "Same tokens in every"):
            assert name in shown
        assert driver.race.report is not None
        assert driver.race.report.advice is not None
        assert driver.race.report.advice.sentence[:20] in shown
        panes = driver.screen.query(LanePane)
        across = len({pane.region.x for pane in panes})
        assert across == {60: 1, 80: 1, 120: 3, 200: 5}[size[0]], "side by side where there is room, stacked where not"


async def test_keys(engine: TorchEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    async with on_screen(engine, monkeypatch, (120, 36), prompts=PROMPTS[:1]) as driver:
        await driver.until(Stage.DONE)
        first = driver.race
        await driver.pilot.press("p")
        assert "photo finish" in driver.screen._stage_text()
        await driver.pilot.press("r")
        assert driver.screen._replay is not None
        await driver.pilot.press("n")
        await driver.until(Stage.DONE)
        second = driver.race
        assert second is not first
        await driver.pilot.press("escape")
    assert driver.app.return_value is second.report


async def test_escape_stops_before_it_leaves(engine: TorchEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    async with on_screen(engine, monkeypatch, (120, 36), max_tokens=2000) as driver:
        await driver.until(Stage.RACING)
        await driver.pilot.press("escape")
        await driver.until(Stage.DONE)
        assert driver.race.report is None
        await driver.pilot.press("escape")
    assert driver.app.return_value is None


async def test_what_cannot_be_run_ends_the_program(engine: TorchEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    async with on_screen(engine, monkeypatch, (120, 36), prompts=(Prompt((" ",)),)) as driver:
        for _ in range(200):
            await driver.pilot.pause(0.02)
            if driver.app.return_value is not None:
                break
    assert isinstance(driver.app.return_value, BadInputError)


def test_the_first_lane_answers_for_the_next_turn(engine: TorchEngine) -> None:
    race = Race(a_contest(engine.info, (Prompt(("One", "Two")),)), engine.info)
    run(race, engine)
    assert race.last_round is not None
    started = race.last_round.replies[PLAIN].started
    assert started.prompt == "Two"
    assert isinstance(race.last_round.replies[PLAIN].batches[0], DraftBatch)
    assert len({reply.started.prompt_ids for reply in race.last_round.replies.values()}) == 1


@asynccontextmanager
async def chat(
    engine: TorchEngine, monkeypatch: pytest.MonkeyPatch, **options: Any
) -> AsyncIterator[tuple[Pilot[Any], ChatScreen]]:
    """A chat whose first prompt has been answered, plainly."""
    monkeypatch.setattr(session, "start_engine", lambda spec: Ready(engine))
    monkeypatch.setattr(engine, "close", lambda: None)
    given = {"prompt": "Hello", "method": "peagle", "depth": 3, "max_tokens": 40, "record": False, **options}
    app = ChatApp(ChatOptions(EngineSpec(), **given))
    async with app.run_test(size=(120, 36)) as pilot:
        screen: Screen[Any] = app.screen
        assert isinstance(screen, ChatScreen)
        for _ in range(1000):
            await pilot.pause(0.02)
            if screen._talk.phase is Phase.READY and screen._talk.conversation.reply:
                break
        yield pilot, screen


async def begin_race(pilot: Pilot[Any]) -> RaceScreen:
    await pilot.press("f6")
    for _ in range(100):
        await pilot.pause(0.02)
        if isinstance(screen := pilot.app.screen, RaceScreen):
            return screen
    raise AssertionError("the race does not begin")


async def test_a_race_on_the_last_prompt_and_the_winner_adopted(
    engine: TorchEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with chat(engine, monkeypatch) as (pilot, chat_screen):
        race_screen = await begin_race(pilot)
        for _ in range(2000):
            await pilot.pause(0.02)
            if race_screen._race and race_screen._race.stage is Stage.DONE:
                break
        race = race_screen._race
        assert race is not None
        assert race.prompt == "Hello"
        assert {("none", 0), ("eagle3", 3), ("peagle", 3), ("peagle", 7)} <= set(race.contest.settings)
        await pilot.press("a")
        await pilot.pause(0.1)
        assert pilot.app.screen is chat_screen
        wanted = chat_screen._talk.conversation.wanted
        assert wanted is not None
        method, depth = race.standings()[0].runner.setting
        assert wanted.method == method
        assert method == "none" or wanted.depth == depth
        reply = chat_screen._talk.conversation.reply
        assert reply is not None
        assert reply.metrics.tokens == 40, "the race's events are not the chat's"


async def test_leaving_a_race_that_runs_gives_the_engine_back(
    engine: TorchEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with chat(engine, monkeypatch, max_tokens=150) as (pilot, chat_screen):
        await begin_race(pilot)
        await pilot.press("escape", "escape")
        for _ in range(500):
            await pilot.pause(0.02)
            if pilot.app.screen is chat_screen:
                break
        assert chat_screen._talk.phase is Phase.READY
        await pilot.press("/", "r", "e", "t", "r", "y", "enter")
        for _ in range(1000):
            await pilot.pause(0.02)
            reply = chat_screen._talk.conversation.reply
            if chat_screen._talk.phase is Phase.READY and reply and reply.metrics.tokens == 150:
                return
        raise AssertionError("the chat does not go on")


async def test_a_depth_that_follows_the_advice_is_shown_as_such(
    engine: TorchEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with chat(engine, monkeypatch, auto=True, max_tokens=900) as (pilot, screen):
        conversation = screen._talk.conversation
        assert conversation.auto
        assert conversation.reply is not None
        assert len(conversation.reply.changes) > 3, "it tries several depths"
        header = screen.query_one(ChatHeader)
        assert "auto" in "".join(piece.text for piece in header.draw()[0])
        assert conversation.wanted is not None
        await pilot.press("f3" if conversation.wanted.depth else "f4")
        assert not conversation.auto, "a depth that was chosen stays"
