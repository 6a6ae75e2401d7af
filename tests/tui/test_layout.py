"""Wrapping: rows that fit, words that stay whole, and the same rows however the text arrives."""

import random

import pytest
from rich.cells import cell_len

from peagle_cli.tui.layout import Layout
from peagle_cli.tui.model import Kind, Span


def rows(layout: Layout) -> list[str]:
    return ["".join(fragment.text for fragment in row) for row in layout.rows]


def lay_out(text: str, width: int) -> list[str]:
    layout = Layout(width)
    layout.extend([Span(text, Kind.PLAIN)])
    return rows(layout)


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("one two three", 8, ["one two ", "three"]),
        ("one two", 7, ["one two"]),
        ("one   two", 4, ["one ", "two"]),  # spaces that do not fit are dropped
        ("abcdefghij", 4, ["abcd", "efgh", "ij"]),
        ("a\n\nb", 9, ["a", "", "b"]),
        ("    x = 1", 20, ["    x = 1"]),
        ("漢字かな", 5, ["漢字", "かな"]),
        ("ab漢", 3, ["ab", "漢"]),
        ("e\u0301e\u0301e\u0301", 2, ["e\u0301e\u0301", "e\u0301"]),
        ("👩\u200d💻👩\u200d💻", 3, ["👩\u200d💻", "👩\u200d💻"]),
        ("\u0301a", 9, ["◌\u0301a"]),  # a mark with nothing to stand on
    ],
)
def test_breaks_where_a_reader_expects_it(text: str, width: int, expected: list[str]) -> None:
    assert lay_out(text, width) == expected


def test_words_made_of_several_tokens_stay_whole() -> None:
    layout = Layout(9)
    layout.extend([Span(text, Kind.ACCEPTED) for text in ("an un", "believ", "able", " one")])
    assert rows(layout) == ["an ", "unbelieva", "ble one"]
    layout = Layout(12)
    layout.extend([Span(text, Kind.ACCEPTED) for text in ("an un", "believ", "able", " one")])
    assert rows(layout) == ["an ", "unbelievable", "one"]


def test_a_bar_does_not_pull_a_word_from_a_full_row() -> None:
    layout = Layout(7)
    layout.extend([Span("one two", Kind.PLAIN), Span("▏", Kind.BAR), Span(" x", Kind.PLAIN)])
    assert rows(layout) == ["one two", "▏ x"]


def test_a_character_that_arrives_in_parts_is_put_together() -> None:
    layout = Layout(20)
    parts = ("👩", "\u200d", "💻", "e", "\u0301", "❤", "\ufe0f")
    layout.extend([Span(part, Kind.PLAIN) for part in parts])
    assert [fragment.text for fragment in layout.rows[0]] == ["👩\u200d💻", "e\u0301", "❤\ufe0f"]
    assert [fragment.width for fragment in layout.rows[0]] == [2, 1, 2]


def test_a_joiner_behind_a_letter_joins_nothing() -> None:
    """Terminals draw the emoji for itself, two cells wide."""
    layout = Layout(20)
    layout.extend([Span(part, Kind.PLAIN) for part in ("m", "\u200d", "💻")])
    assert [fragment.width for fragment in layout.rows[0]] == [1, 2]


def test_hidden_kinds_take_no_room() -> None:
    spans = [Span("a", Kind.ACCEPTED), Span("wrong", Kind.REJECTED), Span("b", Kind.CORRECTION)]
    layout = Layout(20, hidden={Kind.REJECTED})
    layout.extend(spans)
    assert rows(layout) == ["ab"]


def test_rows_are_the_same_however_the_text_arrives_and_only_reported_rows_change() -> None:
    chance = random.Random(7)
    pieces = ["the ", "list", " 漢字", "\n", "    ", "👩\u200d💻", "e\u0301", "▏", "merge_sorted", ", ", "\n\n", "."]
    spans = [Span(chance.choice(pieces), chance.choice([Kind.ACCEPTED, Kind.BAR])) for _ in range(400)]
    for width in (2, 5, 17, 60):
        whole = Layout(width)
        whole.extend(spans)
        growing = Layout(width)
        taken = 0
        while taken < len(spans):
            taken += chance.randrange(1, 9)
            before = [list(row) for row in growing.rows]
            changed = growing.extend(spans[:taken])
            assert growing.rows[:changed] == before[:changed]
        assert list(growing.rows) == list(whole.rows)
        for row in whole.rows:
            assert sum(fragment.width for fragment in row) <= width
            assert all(fragment.width == cell_len(fragment.text) for fragment in row)


def test_finds_the_same_words_again_at_another_width() -> None:
    spans = [Span(f"word{i} ", Kind.PLAIN) for i in range(200)]
    wide, narrow = Layout(60), Layout(13)
    wide.extend(spans)
    narrow.extend(spans)
    for row in range(len(wide.rows)):
        found = narrow.row_at(wide.span_at(row))
        assert narrow.rows[found][0].text == wide.rows[row][0].text


def test_marks_enclose_a_span_and_belong_to_it() -> None:
    layout = Layout(30, marks={Kind.REJECTED: ("[-", "-]")})
    layout.extend([Span("a", Kind.ACCEPTED), Span(" dog", Kind.REJECTED), Span(" cat", Kind.CORRECTION)])
    assert rows(layout) == ["a[- dog-] cat"]
    assert {part.text: (part.span, part.start) for part in layout.rows[0] if part.kind is Kind.REJECTED} == {
        "[-": (1, 0),
        " ": (1, 0),
        "dog": (1, 1),
        "-]": (1, 4),
    }


def random_spans(count: int, seed: int) -> list[Span]:
    chance = random.Random(seed)
    pieces = [
        "the ",
        "list",
        " 漢字",
        "\n",
        "    ",
        "👩\u200d💻",
        "e\u0301",
        "\u0301",
        "▏",
        "merge_sorted",
        ", ",
        "\n\n",
        "a\nb",
    ]
    kinds = [Kind.ACCEPTED, Kind.BAR, Kind.REJECTED]
    return [Span(chance.choice(pieces), chance.choice(kinds)) for _ in range(count)]


@pytest.mark.parametrize("width", [2, 5, 17, 60])
def test_cut_back_and_grown_again_it_is_as_if_it_had_only_grown(width: int) -> None:
    spans = random_spans(400, seed=11)
    marks = {Kind.REJECTED: ("[-", "-]")}
    there_and_back = Layout(width, marks=marks)
    chance = random.Random(width)
    for _ in range(60):
        end = chance.randrange(len(spans) + 1)
        kept = [list(row) for row in there_and_back.rows]
        gone = there_and_back.cut(end)
        assert there_and_back.rows[:gone] == kept[:gone]
        there_and_back.extend(spans, end)
        only_grown = Layout(width, marks=marks)
        only_grown.extend(spans[:end])
        assert list(there_and_back.rows) == list(only_grown.rows)
        assert [there_and_back.span_at(row) for row in range(len(only_grown.rows))] == [
            only_grown.span_at(row) for row in range(len(only_grown.rows))
        ]


def test_from_a_line_s_beginning_on_it_is_the_rest_of_the_whole() -> None:
    spans = [Span(f"word{i}" + ("\n" if i % 17 == 16 else " "), Kind.PLAIN) for i in range(200)]
    whole, rest = Layout(30), Layout(30, begin=17 * 5)
    whole.extend(spans)
    rest.extend(spans)
    assert list(rest.rows) == whole.rows[-len(rest.rows) :]
    assert rest.rows[0][0].span == 17 * 5
