from itertools import pairwise

import pytest

from peagle_cli.trace.kinds import Place, TokenKind, read


def kinds(*tokens: str) -> str:
    """The first letters of the tokens' kinds."""
    place, letters = Place(), ""
    for token in tokens:
        kind, place = read(place, token)
        letters += kind[0]
    return letters


@pytest.mark.parametrize(
    ("token", "kind"),
    [
        (" merge", "word"),
        ("'s", "word"),
        ("3rd", "word"),
        (" 1", "number"),
        ("3.14", "number"),
        ("\n\n", "whitespace"),
        ("  ", "whitespace"),
        (".", "punctuation"),
        ("),", "punctuation"),
        (" +", "punctuation"),
        ("“", "punctuation"),
        ("", "other"),
        ("🦅", "other"),
        ("`x`", "code"),
        ("语言", "word"),
    ],
)
def test_a_token_by_itself(token: str, kind: str) -> None:
    assert read(Place(), token)[0] is TokenKind(kind)


def test_a_fenced_block_is_code_from_fence_to_fence() -> None:
    assert kinds("Here", ":\n", "```", "python", "\n", "    ", "x = ", "1", "\n", "```", "\n", "Done") == "wpccccccccww"


def test_a_fence_may_come_in_parts_and_be_indented() -> None:
    assert kinds("1.", " Do:\n", "   ", "``", "`", "sh\n", "ls", "\n", "   ", "```", "\n\n", "Then") == "nwwcccccccww"


def test_backticks_within_a_block_end_it_only_alone_on_their_line() -> None:
    assert kinds("```\n", "a ", "```", " b\n", "```py", "\n", "```", "\n", "out") == "cccccccww"


def test_a_longer_fence_holds_a_shorter_one() -> None:
    assert kinds("````", "\n", "```", "\n", "```", "\n", "````", "\n", "out") == "cccccccww"


def test_tildes_fence_too_but_strike_nothing_out() -> None:
    assert kinds("~~", "old", "~~", "\n", "~~~\n", "x\n", "~~~", "\n", "out") == "pwpwcccww"


def test_a_code_span_ends_at_as_many_backticks_or_with_the_line() -> None:
    assert kinds("Use ", "`", "sort", "`", " or ", "``", "a`b", "``", ".", "A `", "loose", "\n", "end") == (
        "wcccwcccpcccw"
    )


def test_text_may_be_cut_anywhere_between_words() -> None:
    text = "Use `a b`:\n\n```py\nx = 1\n```\n~~~\ny\n~~~\nDone `z` 1"
    whole = read(Place(), text)[1]
    for cut in range(len(text)):
        _, place = read(Place(), text[:cut])
        assert read(place, text[cut:])[1] == whole, text[:cut]


def test_places_are_few() -> None:
    """So that what was read once can be looked up, however long the text."""
    place, places = Place(), []
    for _ in range(50):
        place = read(place, "a `b` c\n")[1]
        places.append(place)
    assert all(a == b for a, b in pairwise(places))
