"""A recording at any moment: what was seen live, however the moment is reached."""

import math
import random
from itertools import pairwise

import pytest

from peagle_cli.trace.events import Changed, DraftBatch, Finished
from peagle_cli.trace.metrics import Metrics
from peagle_cli.trace.tally import Tally
from peagle_cli.tui import playback as playback_module
from peagle_cli.tui.conversation import Reply
from peagle_cli.tui.model import Kind, Transcript
from peagle_cli.tui.playback import BETWEEN_REQUESTS_S, Playback
from tests.recordings import Recorded


@pytest.fixture
def playback(recorded: Recorded) -> Playback:
    return Playback(recorded.load(), math.inf)


def test_at_its_end_it_shows_the_figures_of_the_live_run(recorded: Recorded, playback: Playback) -> None:
    chat, race = recorded.told
    playback.seek(len(chat))
    assert playback.reply is not None
    assert playback.reply.metrics.summary() == Metrics(chat).summary()
    assert not playback.runners
    playback.seek(playback.length)
    for runner, lane in zip(playback.runners, ("P-EAGLE", "plain"), strict=True):
        assert runner.reply.metrics.summary() == Metrics(e for e in race if e.lane == lane).summary()


def test_going_back_and_forth_ends_where_it_began(playback: Playback) -> None:
    for position in (5, 20, 3, 30, 12):
        playback.seek(position)
    there = list(playback.transcript.spans)
    fresh = Playback(playback.recording, math.inf)
    fresh.seek(12)
    assert there == list(fresh.transcript.spans)
    assert playback.reply is not None
    assert fresh.reply is not None
    assert playback.reply.metrics.summary() == fresh.reply.metrics.summary()


@pytest.mark.parametrize("events_per_mark", [1, 3, 7])
def test_however_a_moment_is_reached_all_is_as_if_it_had_been_played_to(
    playback: Playback, monkeypatch: pytest.MonkeyPatch, events_per_mark: int
) -> None:
    monkeypatch.setattr(playback_module, "_EVENTS_PER_MARK", events_per_mark)
    chance = random.Random(events_per_mark)
    positions = [playback.length, *(chance.randrange(playback.length + 1) for _ in range(60)), playback.length]
    for position in positions:
        playback.seek(position)
        played = Playback(playback.recording, math.inf)
        played.seek(position)
        assert everything(playback) == everything(played)


def everything(playback: Playback) -> list[object]:
    """All that is shown of a moment."""
    race = [everything_of(runner.reply, runner.transcript) for runner in playback.runners]
    turn = everything_of(playback.reply, playback.transcript)
    return [playback.position, playback.run and playback.run.asked, race, turn, *figures(playback.tally)]


def everything_of(reply: Reply | None, transcript: Transcript) -> list[object]:
    shown: list[object] = [list(transcript.spans), transcript.batches]
    shown += [transcript.batch(number) for number in range(len(transcript.batches))]
    if reply is not None:
        shown += [
            reply.setting,
            reply.text,
            reply.speed,
            reply.speeds,
            reply.changes,
            list(reply.batches),
            reply.outcome,
        ]
        shown += figures(reply.tally)
    return shown


def figures(tally: Tally) -> list[object]:
    course = tally.course
    batches = [course.stretch(i, i + 1) for i in range(len(course))]
    return [tally.metrics.summary(), tally.by_kind.by_kind(), course.segments, course.deepest, course.replies, batches]


def test_steps_there_and_back(recorded: Recorded, playback: Playback) -> None:
    steps = sum(isinstance(event, DraftBatch) for told in recorded.told for event in told)
    stops = [0]
    while playback.position < playback.length:
        playback.seek(playback.next_step())
        stops.append(playback.position)
    assert len(stops) == steps + 1
    for before, behind in reversed(list(pairwise(stops))):
        playback.seek(playback.previous_step())
        assert before <= playback.position < behind
        assert playback.next_step() == behind


def test_finds_the_next_rejection(playback: Playback) -> None:
    playback.seek(playback.next_rejection())
    assert playback.reply is not None
    assert playback.reply.batches[-1].rejected
    assert not any(batch.rejected for batch in list(playback.reply.batches)[:-1])


def test_the_conversation_reads_as_it_did(playback: Playback) -> None:
    playback.seek(playback.length)
    kinds = [span.kind for span in playback.transcript.spans]
    assert kinds.count(Kind.PROMPT) == 1  # the second request is a race
    assert kinds.count(Kind.CHANGE) == 2
    assert kinds[-1] is Kind.NOTE


def test_keeps_the_time_within_requests_alone(recorded: Recorded, playback: Playback) -> None:
    chat, race = playback.recording.runs
    spent = chat.times[-1] - chat.times[0] + race.times[-1] - race.times[0]
    assert playback.seconds == pytest.approx(spent + BETWEEN_REQUESTS_S)
    changes = sum(isinstance(event, Changed) for event in recorded.told[0])
    while not playback.survey.complete:
        playback.look_ahead(3)
    assert len(playback.survey.marks) == 2 + changes
    assert playback.position_at(0) >= 1
    assert playback.position_at(playback.seconds) == playback.length
    brisk = Playback(playback.recording, max_idle=0.0)
    assert brisk.seconds == pytest.approx(BETWEEN_REQUESTS_S)


def test_an_end_belongs_to_its_step(recorded: Recorded, playback: Playback) -> None:
    last = max(i for i, event in enumerate(recorded.told[0]) if isinstance(event, DraftBatch))
    playback.seek(last)
    playback.seek(playback.next_step())
    assert playback.reply is not None
    assert isinstance(playback.reply.outcome, Finished)
