"""Finding words in a transcript."""

from peagle_cli.tui.model import Kind, Transcript
from peagle_cli.tui.search import Place, Search
from tests.tui.batches import batch


def transcript() -> Transcript:
    shown = Transcript()
    shown.add_turn("you")
    shown.add_prompt("Merge the lists, then merge again")
    shown.add_turn("model")
    shown.begin_reply()
    return shown


def test_finds_across_tokens_bars_and_rejected_drafts() -> None:
    shown = transcript()
    shown.add_batch(batch(["We ", "mer"], 2, "ge"))
    shown.add_batch(batch([" wrong"], 0, " list", step=2))
    search = Search(shown.spans)
    search.find("merge list")
    assert len(search) == 1
    place = search.place(0)
    assert shown.spans[place.span].text == "mer"
    search.find("wrong")
    assert not search


def test_case_counts_only_where_it_is_written() -> None:
    search = Search(transcript().spans)
    search.find("merge")
    assert len(search) == 2
    search.find("Merge")
    assert len(search) == 1
    search.find("")
    assert not search


def test_nothing_is_found_across_turns_or_taken_for_a_pattern() -> None:
    search = Search(transcript().spans)
    for pattern in ("again\n", "l.sts", "model"):
        search.find(pattern)
        assert not search


def test_marks_the_parts_of_a_piece_that_match() -> None:
    shown = transcript()
    prompt = next(i for i, span in enumerate(shown.spans) if span.kind is Kind.PROMPT)
    search = Search(shown.spans)
    search.find("merge")
    assert search.within(Place(prompt, 0), 33) == [(0, 5, 0), (22, 27, 1)]
    assert search.within(Place(prompt, 24), 9) == [(0, 3, 1)]
    assert search.within(Place(prompt, 6), 10) == []
    assert search.within(Place(0, 0), 3) == []


def test_goes_on_from_where_the_reader_is_and_finds_what_came_since() -> None:
    shown = transcript()
    search = Search(shown.spans)
    search.find("merge")
    assert search.first_from(Place(0, 0)) == 0
    prompt = next(i for i, span in enumerate(shown.spans) if span.kind is Kind.PROMPT)
    assert search.first_from(Place(prompt, 1)) == 1
    assert search.first_from(Place(len(shown.spans), 0)) == 0
    shown.add_batch(batch("", 0, "merge"))
    search.find("merge")
    assert len(search) == 3
    assert search.first_from(Place(len(shown.spans) - 1, 0)) == 2
