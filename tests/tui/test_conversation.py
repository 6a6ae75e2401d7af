"""What is sent to the engine, and what depth and method may become."""

import pytest

from peagle_cli.engine.lanes import LANE
from peagle_cli.engine.protocol import EngineSpec, LaneSetting, Message, SetDepth, SetMethod
from peagle_cli.errors import BadInputError
from peagle_cli.trace.events import Changed, Event, Finished, Token
from peagle_cli.tui.conversation import Conversation, Reply
from peagle_cli.tui.options import ChatOptions
from tests.tui.batches import INFO, batch


def opened(**options: object) -> Conversation:
    conversation = Conversation(ChatOptions(EngineSpec(), **options))  # type: ignore[arg-type]
    conversation.engine_opened(INFO)
    return conversation


def answer(conversation: Conversation, *events: Event) -> None:
    assert conversation.reply is not None
    for event in events:
        conversation.reply.add(event)


def test_turns_go_back_to_the_engine_as_they_came() -> None:
    conversation = opened(system="Be brief.")
    conversation.ask("One?")
    answer(conversation, batch("", 0, "\x1b[1m"), batch("ab", 1, "c"), Finished(LANE, "stop"))
    request = conversation.ask("Two?")
    assert request.messages == (
        Message("system", "Be brief."),
        Message("user", "One?"),
        Message("assistant", "\x1b[1mac"),
        Message("user", "Two?"),
    )


def test_a_retry_takes_the_place_of_the_reply() -> None:
    conversation = opened()
    first = conversation.ask("One?")
    answer(conversation, batch("", 0, "No."))
    assert conversation.retry() == first
    answer(conversation, batch("", 0, "Yes."))
    assert conversation.ask("Two?").messages[1] == Message("assistant", "Yes.")


def test_prompts_without_an_answer_are_no_turns() -> None:
    conversation = opened()
    conversation.ask("One?")
    assert [message.content for message in conversation.ask("Two?").messages] == ["Two?"]
    conversation.refused()
    assert [message.content for message in conversation.ask("Three?").messages] == ["Three?"]
    conversation.clear()
    with pytest.raises(BadInputError, match="no prompt"):
        conversation.retry()


def test_what_was_wanted_stays_wanted_of_an_engine_that_is_started_again() -> None:
    conversation = opened(auto=True)
    conversation.engine_opened(INFO)
    assert conversation.auto
    conversation.set_depth(2)
    conversation.engine_opened(INFO)
    assert not conversation.auto
    assert conversation.wanted == LaneSetting(LANE, "peagle", 2)


def test_starts_with_what_was_asked_for_or_what_the_engine_does_best() -> None:
    assert opened().wanted == LaneSetting(LANE, "peagle", 7)
    assert opened(method="eagle3").wanted == LaneSetting(LANE, "eagle3", 3)
    assert opened(method="eagle3", depth=1).wanted == LaneSetting(LANE, "eagle3", 1)
    with pytest.raises(BadInputError, match="99"):
        opened(depth=99)


def test_depth_stays_within_what_the_drafter_can() -> None:
    conversation = opened(depth=7)
    assert conversation.deepen(1) == [SetDepth(LANE, 8)]
    with pytest.raises(BadInputError):
        conversation.deepen(1)
    assert conversation.set_depth(0) == [SetDepth(LANE, 0)]
    with pytest.raises(BadInputError):
        conversation.deepen(-1)
    assert conversation.wanted == LaneSetting(LANE, "peagle", 0)


def test_methods_go_round_and_keep_the_depth_as_far_as_the_drafter_can() -> None:
    conversation = opened(depth=8)
    assert conversation.next_method() == [SetMethod(LANE, "none")]
    with pytest.raises(BadInputError, match="Plain"):
        conversation.deepen(-1)
    assert conversation.next_method() == [SetMethod(LANE, "eagle3"), SetDepth(LANE, 4)]
    assert conversation.next_method() == [SetMethod(LANE, "peagle"), SetDepth(LANE, 4)]


def test_plain_decoding_changes_to_a_drafter_at_its_own_depth() -> None:
    conversation = opened(method="none")
    assert conversation.set_method("peagle") == [SetMethod(LANE, "peagle"), SetDepth(LANE, 7)]


def test_nothing_can_be_asked_before_the_engine_is_known() -> None:
    conversation = Conversation(ChatOptions(EngineSpec()))
    for act in (lambda: conversation.ask("One?"), lambda: conversation.deepen(1), conversation.next_method):
        with pytest.raises(BadInputError, match="loading"):
            act()


def test_a_reply_follows_its_events() -> None:
    reply = Reply(LaneSetting(LANE, "peagle", 2))
    for event in (
        batch("", 0, "a", step=0, clock_s=0.5),
        batch("bc", 2, "d", step=1, clock_s=1.0),
        Changed(LANE, "depth", 2, 1),
        batch("e", 0, "f", step=2, clock_s=1.5),
    ):
        reply.add(event)
    assert reply.text == "abcdf"
    assert reply.setting == LaneSetting(LANE, "peagle", 1)
    assert reply.changes == [1.0]
    assert [b.bonus for b in reply.batches] == [Token(99, text) for text in "adf"]
    assert reply.speeds == [(1.0, 6.0), (1.5, 4.0)]
    reply.add(Finished(LANE, "length"))
    assert reply.closing() == "cut at the limit of tokens per reply · 5 tokens · 4 tokens/s · 2.00 per step"
