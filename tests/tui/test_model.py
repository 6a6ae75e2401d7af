"""The transcript: what happened to each token, and nothing that could harm a terminal."""

from peagle_cli.trace.events import Changed
from peagle_cli.tui.model import Kind, Transcript
from tests.tui.batches import batch


def spans(transcript: Transcript) -> list[tuple[str, str]]:
    return [(span.text, str(span.kind)) for span in transcript.spans]


def reply() -> Transcript:
    transcript = Transcript()
    transcript.begin_reply()
    return transcript


def text_of(transcript: Transcript) -> str:
    kinds = (Kind.ACCEPTED, Kind.BONUS, Kind.CORRECTION, Kind.PLAIN)
    return "".join(span.text for span in transcript.spans if span.kind in kinds)


def test_rejected_drafts_stand_before_what_corrects_them() -> None:
    transcript = reply()
    transcript.add_batch(batch("abcd", 2, "X"))
    assert spans(transcript) == [
        ("▏", "bar"),
        ("a", "accepted"),
        ("b", "accepted"),
        ("c", "rejected"),
        ("d", "discarded"),
        ("X", "correction"),
    ]


def test_a_batch_that_was_right_ends_in_a_bonus_and_one_without_drafts_is_plain() -> None:
    transcript = reply()
    transcript.add_batch(batch("ab", 2, "Y"))
    transcript.add_batch(batch("", 0, "Z"))
    assert [kind for _, kind in spans(transcript)] == ["bar", "accepted", "accepted", "bonus", "bar", "plain"]


def test_tokens_behind_the_end_of_the_reply_are_not_shown() -> None:
    transcript = reply()
    transcript.add_batch(batch("abc", 3, "Y", emitted=2))
    assert text_of(transcript) == "ab"


def test_every_token_knows_its_reply_batch_and_position() -> None:
    transcript = reply()
    transcript.add_batch(batch("abc", 1, "X", step=7))
    transcript.begin_reply()
    transcript.add_batch(batch("", 0, "Z", step=0))
    places = [(span.text, span.reply, span.step, span.position) for span in transcript.spans if span.step >= 0]
    assert places == [("a", 0, 7, 0), ("b", 0, 7, 1), ("c", 0, 7, 2), ("X", 0, 7, 1), ("Z", 1, 0, 0)]


def test_changes_are_marked_where_the_next_batch_begins_and_only_if_they_last() -> None:
    transcript = reply()
    transcript.add_batch(batch("", 0, "a"))
    for old, new in ((7, 6), (6, 5)):
        transcript.add_change(Changed("chat", "depth", old, new))
    transcript.add_change(Changed("chat", "method", "peagle", "eagle3"))
    transcript.add_change(Changed("chat", "method", "eagle3", "peagle"))
    assert [kind for _, kind in spans(transcript)] == ["bar", "plain"]
    transcript.add_batch(batch("", 0, "b"))
    marks = [text.replace("\N{NO-BREAK SPACE}", " ").strip() for text, kind in spans(transcript) if kind == "change"]
    assert marks == ["── depth 7 → 5 ──"]


def test_methods_are_marked_by_their_names() -> None:
    transcript = reply()
    transcript.add_change(Changed("chat", "method", "peagle", "none"))
    transcript.add_batch(batch("", 0, "b"))
    assert "P-EAGLE → plain" in transcript.spans[0].text.replace("\N{NO-BREAK SPACE}", " ")


def test_control_characters_never_come_through() -> None:
    transcript = Transcript()
    transcript.add_turn("a\x1b[2Jb")
    transcript.add_prompt("\x1b]0;title\x07")
    transcript.begin_reply()
    transcript.add_batch(batch(["\x1b[31m", "\u202e", "\r"], 1, "\x9b"))
    transcript.add_note("\x08")
    shown = "".join(span.text for span in transcript.spans)
    assert not any(char in shown for char in "\x1b\x07\u202e\r\x9b\x08")


def test_line_breaks_in_rejected_drafts_stay_in_the_line() -> None:
    transcript = reply()
    transcript.add_batch(batch(["\n\n", "\t"], 0, "\n"))
    assert [text for text, _ in spans(transcript)] == ["▏", "⏎⏎", "⇥", "\n"]


def test_tabs_reach_the_next_stop_of_the_reply_s_own_text() -> None:
    transcript = reply()
    transcript.add_batch(batch(["ab\tc", "\t"], 1, "x\n\td"))
    assert text_of(transcript) == "ab  cx\n    d"


def test_a_step_that_shows_nothing_draws_no_bar() -> None:
    transcript = reply()
    transcript.add_batch(batch("", 0, ""))
    assert not transcript.spans
