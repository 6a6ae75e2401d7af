"""The tap's steps and the stream's pieces become one course of batches, whichever comes first, and whatever is lost."""

from peagle_cli.engine.vllm.batches import BatchMaker, Opinion, Piece
from peagle_cli.engine.vllm.weave import Weaver
from peagle_cli.engine.vllm.wire import Step, Work
from peagle_cli.trace.events import UNKNOWN_ID, Candidate, DraftBatch

PROMPT = 5
DEPTH = 3


class Numbers:
    """A token's text is its number."""

    def push(self, token_id: int) -> str:
        return f"{token_id} "

    def fork(self) -> "Numbers":
        return self


def weaver(*, tapped: bool = True, wants_opinions: bool = False) -> Weaver:
    maker = BatchMaker("a", PROMPT, Numbers())
    maker.method = "peagle"
    return Weaver(maker, tapped=tapped, depth=DEPTH, wants_opinions=wants_opinions, began_s=0.0)


def prefill() -> tuple[Step, Work]:
    return step(Work("r", 0, PROMPT, DEPTH, (), 0, (10,), 1, 0.0, 1.0, False))


def drafting(
    position: int, drafted: tuple[int, ...], sampled: tuple[int, ...], finished: bool = False
) -> tuple[Step, Work]:
    accepted = len(sampled) - 1
    return step(Work("r", position, 0, DEPTH, drafted, accepted, sampled, len(sampled), 0.25, 1.0 + position, finished))


def step(work: Work) -> tuple[Step, Work]:
    return Step(0, 0.5, 1, (work,)), work


def piece(*ids: int, at_s: float = 0.0) -> Piece:
    return Piece(ids, "", at_s)


def ids(batches: list[DraftBatch]) -> list[int]:
    return [token.id for batch in batches for token in batch.tokens]


def test_the_tap_alone_is_enough_for_a_batch() -> None:
    woven = weaver()
    woven.told(*prefill())
    woven.told(*drafting(1, (11, 12, 99), (11, 12, 13)))
    first, second = woven.batches()
    assert (first.prefill, first.drafted, first.bonus.id, first.verify_s) == (PROMPT, (), 10, 0.5)
    assert (second.accepted, second.bonus.id, second.emitted) == (2, 13, 3)
    assert [token.id for token in second.drafted] == [11, 12, 99]
    assert (second.draft_s, second.verify_s, second.clock_s) == (0.25, 0.5, 2.0)


def test_a_prompt_in_chunks_is_one_prefill() -> None:
    woven = weaver()
    woven.told(*step(Work("r", 0, 2, DEPTH, (), 0, (), 0, 0.0, 0.5, False)))
    woven.told(*step(Work("r", 0, 3, DEPTH, (), 0, (10,), 1, 0.0, 1.0, False)))
    (batch,) = woven.batches()
    assert (batch.prefill, batch.verify_s, batch.emitted) == (5, 1.0, 1)


def test_the_stream_waits_for_the_tap() -> None:
    woven = weaver()
    woven.streamed(piece(10))
    assert list(woven.batches()) == []
    assert woven.waits
    woven.told(*prefill())
    assert ids(list(woven.batches())) == [10]
    assert not woven.waits


def test_steps_that_were_lost_come_from_the_stream() -> None:
    woven = weaver()
    woven.told(*prefill())
    woven.told(*drafting(4, (14, 98, 97), (14, 15), finished=True))
    batches = list(woven.batches())
    assert ids(batches) == [10], "what lies between is not known yet"
    woven.streamed(piece(10))
    woven.streamed(piece(11, 12, 13))
    woven.streamed(piece(14, 15))
    batches += woven.batches()
    assert ids(batches) == [10, 11, 12, 13, 14, 15]
    gap = batches[1]
    assert [token.id for token in gap.drafted] == [11, 12, UNKNOWN_ID]
    assert gap.accepted == 2
    assert woven.complete


def test_a_tap_that_stays_silent_is_given_up() -> None:
    woven = weaver()
    woven.told(*prefill())
    woven.streamed(piece(10))
    batches = list(woven.batches())
    woven.streamed(piece(11, 12))
    woven.give_up()
    batches += woven.batches()
    assert ids(batches) == [10, 11, 12]
    woven.told(*drafting(1, (11, 99, 98), (11, 12)))  # too late
    woven.told(*drafting(3, (13, 97, 96), (13, 14), finished=True))
    batches += woven.batches()
    assert ids(batches) == [10, 11, 12, 13, 14]


def test_a_stop_cuts_what_is_emitted() -> None:
    woven = weaver()
    woven.told(*prefill())
    woven.told(*step(Work("r", 1, 0, DEPTH, (11, 12, 13), 3, (11, 12, 13, 14), 2, 0.1, 2.0, True)))
    batch = list(woven.batches())[-1]
    assert (batch.accepted, batch.emitted, ids([batch])) == (3, 2, [11, 12])


def test_opinions_wait_for_the_stream() -> None:
    woven = weaver(wants_opinions=True)
    woven.told(*prefill())
    assert list(woven.batches()) == []
    opinion = Opinion(0.75, (Candidate(10, "ten", 0.75), Candidate(11, "eleven", 0.25)))
    woven.streamed(Piece((10,), "", 0.0, (opinion,)))
    (batch,) = woven.batches()
    assert batch.bonus.prob == 0.75
    assert batch.bonus.alternatives == opinion.candidates


def test_without_a_tap_tokens_that_come_together_were_drafted() -> None:
    woven = weaver(tapped=False)
    woven.streamed(piece(10, at_s=1.0))
    woven.streamed(piece(11, 12, at_s=1.5))
    first, second = woven.batches()
    assert (first.prefill, first.emitted, first.drafted) == (PROMPT, 1, ())
    assert (second.accepted, second.emitted, len(second.drafted)) == (1, 2, DEPTH)
    assert (second.draft_s, second.verify_s, second.clock_s) == (0.0, 0.5, 1.5)
    assert woven.complete


def test_a_server_that_tells_no_ids_is_shown_as_it_comes() -> None:
    maker = BatchMaker("a", 0, None)
    woven = Weaver(maker, tapped=False, depth=0, wants_opinions=False, began_s=0.0)
    woven.streamed(Piece(None, "", 0.1))  # the role comes first, and says nothing
    woven.streamed(Piece(None, "Two words", 0.2))
    woven.streamed(Piece(None, " more", 0.3))
    batches = list(woven.batches())
    assert "".join(batch.text for batch in batches) == "Two words more"
    assert {token.id for batch in batches for token in batch.tokens} == {UNKNOWN_ID}
