"""What kind of text a token is: code, white space, a word, a number, punctuation, or something else.

The first rule that fits decides:

- `code`: any of its characters belongs to a fenced block or a code span, the backticks and fences included. A fenced
  block begins with a line that begins, after white space, with three or more backticks or tildes; it ends with such a
  line of at least as many, with nothing behind them. A code span reaches from backticks to as many backticks, or to the
  end of the line. (This is CommonMark, simplified so that a text can be read as it arrives.)
- `other`: it has no text: a special token, or a part of a character.
- `whitespace`: nothing but white space.
- `word`: it has a letter.
- `number`: it has a digit.
- `punctuation`: nothing but punctuation, mathematical signs, currency signs and the like, and white space.
- `other`: what is left, such as emoji.
"""

import re
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple
from unicodedata import category


class TokenKind(StrEnum):
    """The kinds, in the order in which they are shown."""

    CODE = "code"
    WHITESPACE = "whitespace"
    PUNCTUATION = "punctuation"
    WORD = "word"
    NUMBER = "number"
    OTHER = "other"


class Marks(NamedTuple):
    """So many backticks or tildes in a row; none of them at all by default."""

    char: str = ""
    length: int = 0


class Place(NamedTuple):
    """What decides on the kind of a token besides itself: where in a text it stands. The default is the beginning.

    `fence` opened the block that the text is in, `span` is the number of backticks that opened the code span. `run` is
    what the text ends with: more may follow, so that its meaning is open. `begins` says that there is nothing but white
    space before it on its line.
    """

    fence: Marks = Marks()
    span: int = 0
    run: Marks = Marks()
    begins: bool = True

    @property
    def in_code(self) -> bool:
        """Whether a character here would be code."""
        return bool(self.fence.length or self.span)


_PIECES = re.compile(r"`+|~+|\n|[^\S\n]+|[^`~\s]+")
_FENCE = 3
_PUNCTUATION = ("P", "Sm", "Sc", "Sk")


@lru_cache(1 << 16)
def read(place: Place, text: str) -> tuple[TokenKind, Place]:
    """The kind of a token that says `text` at `place`, and the place behind it."""
    code = False
    for piece in _PIECES.findall(text):
        if piece[0] in "`~":
            place = _with_marks(place, piece)
            code |= piece[0] == "`" or place.in_code or _opens_block(place)
        else:
            place = _settled(place, piece)
            code |= place.in_code
            if piece == "\n":
                place = Place(fence=place.fence)
    return TokenKind.CODE if code else _kind(text), place


def _with_marks(place: Place, marks: str) -> Place:
    if place.run.length and place.run.char != marks[0]:
        place = _settled(place, marks)
    return place._replace(run=Marks(marks[0], place.run.length + len(marks)))


def _settled(place: Place, following: str) -> Place:
    """The place with its run's meaning known, now that something else follows."""
    run, fence, span = place.run, place.fence, place.span
    if not run.length:
        return place._replace(begins=place.begins and following.isspace())
    if fence.length:
        closes = place.begins and run.char == fence.char and run.length >= fence.length and following.isspace()
        return Place(fence=Marks() if closes else fence, begins=False)
    if _opens_block(place):
        return Place(fence=run, begins=False)
    if run.char == "`":
        span = 0 if run.length == span else span or run.length
    return Place(span=span, begins=False)


def _opens_block(place: Place) -> bool:
    return place.begins and not place.fence.length and place.run.length >= _FENCE


def _kind(text: str) -> TokenKind:
    """The kind of a text that is no code."""
    if not text:
        return TokenKind.OTHER
    if text.isspace():
        return TokenKind.WHITESPACE
    if any(char.isalpha() for char in text):
        return TokenKind.WORD
    if any(char.isnumeric() for char in text):
        return TokenKind.NUMBER
    if all(char.isspace() or category(char).startswith(_PUNCTUATION) for char in text):
        return TokenKind.PUNCTUATION
    return TokenKind.OTHER
