import msgspec
import pytest

from peagle_cli.trace.course import Course
from peagle_cli.trace.events import DraftBatch, Event, Sampling, Started
from peagle_cli.trace.metrics import Metrics
from tests.trace.batches import batch
from tests.tui.batches import MACHINE

STARTED = Started(
    lane="main",
    engine="",
    model="",
    drafters={},
    max_depths={},
    method="peagle",
    depth=2,
    sampling=Sampling(),
    max_tokens=9,
    prompt="",
    prompt_ids=(),
    reused=0,
    machine=MACHINE,
    versions={},
)


def reply(*batches: DraftBatch) -> list[Event]:
    """These batches as a reply, its clock running from 0 by a tenth of a second per batch."""
    steps = [msgspec.structs.replace(b, step=i, clock_s=(i + 1) / 10) for i, b in enumerate(batches)]
    return [STARTED, *steps]


def test_a_stretch_has_the_figures_of_the_reply() -> None:
    events = reply(batch(0, prefill=5), batch(3, 3), batch(3, 1), batch(3, 0), batch(2, 2))
    course, metrics = Course(events), Metrics(events)
    whole = course.stretch(0, len(course))
    assert len(course) == 5
    assert whole.tokens_per_second == pytest.approx(metrics.tokens_per_second)
    assert whole.mean_acceptance_length == metrics.mean_acceptance_length
    assert (whole.drafts, whole.draft_tokens, whole.accepted_tokens) == (4, 11, 6)


def test_stretches_add_up() -> None:
    course = Course(reply(batch(0, prefill=5), *(batch(3, i % 4) for i in range(20))))
    parts = [course.stretch(i, i + 3) for i in range(0, 21, 3)]
    whole = course.stretch(0, 21)
    assert sum(part.tokens for part in parts) == whole.tokens
    assert sum(part.seconds for part in parts) == pytest.approx(whole.seconds)
    assert course.stretch(2, 3).mean_accepted == 1


def test_no_speed_before_the_second_token_and_no_depth_without_drafts() -> None:
    course = Course(reply(batch(0, prefill=5), batch(0, method="none")))
    assert course.stretch(0, 1).tokens_per_second is None
    assert course.stretch(0, 2).tokens_per_second == pytest.approx(10)
    assert course.stretch(0, 2).mean_acceptance_length is None


def test_segments_begin_with_replies_and_with_changes() -> None:
    course = Course(
        [
            *reply(batch(2), batch(2), batch(3), batch(3, method="eagle3")),
            *reply(batch(3, method="eagle3"), batch(0, method="none"), batch(0, method="none")),
        ]
    )
    assert [(s.begin, s.setting, s.opens_reply) for s in course.segments] == [
        (0, ("peagle", 2), True),
        (2, ("peagle", 3), False),
        (3, ("eagle3", 3), False),
        (4, ("eagle3", 3), True),
        (5, ("none", 0), False),
    ]
    assert course.segment_at(1).begin == 0
    assert course.segment_at(6).begin == 5
    assert course.begins_reply(0, 1)
    assert not course.begins_reply(1, 4)
    assert course.begins_reply(1, 5)
    assert course.deepest == 3


def test_time_between_replies_belongs_to_none() -> None:
    course = Course([*reply(batch(0), batch(1, 1)), *reply(batch(0), batch(1, 1))])
    assert course.stretch(0, 4).tokens_per_second == pytest.approx(4 / 0.2)


def test_knows_which_reply_a_batch_is_part_of() -> None:
    course = Course([*reply(batch(2), batch(2)), *reply(batch(2), batch(2), batch(2))])
    assert [course.reply_of(i) for i in range(5)] == [0, 0, 1, 1, 1]
    assert [course.step_of(i) for i in range(5)] == [0, 1, 0, 1, 2]
    assert course.replies == 2
