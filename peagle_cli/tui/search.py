"""Finding words in a transcript, also across tokens. Pure.

What is searched are the words that were said, by the user and in replies: they are put together again from the spans,
without the bars and the rejected drafts between them. Letters match whatever their case, unless the pattern has a
capital.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from peagle_cli.tui.model import Kind, Span

_SAID = frozenset({Kind.PROMPT, Kind.ACCEPTED, Kind.BONUS, Kind.CORRECTION, Kind.PLAIN})
_TURN_END = "\x00"  # which nobody writes: what is found never goes from one turn to the next


class Place(NamedTuple):
    """Where a match begins or ends: a span's index, and the character within it."""

    span: int
    offset: int


class Search:
    """The matches of one pattern in a growing list of spans, in reading order."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self.pattern = ""
        self._spans = spans
        self._taken = 0
        self._parts: list[str] = []
        self._length = 0
        self._said: list[int] = []  # the spans that are searched,
        self._begins: list[int] = []  # and where each begins in the text put together
        self._matches: list[tuple[int, int]] = []  # begin and end there

    def __len__(self) -> int:
        return len(self._matches)

    def find(self, pattern: str) -> None:
        """Find all matches of `pattern` as of now; an empty one has none."""
        self._take_in()
        self.pattern = pattern
        self._matches = []
        if pattern:
            flags = re.NOFLAG if pattern != pattern.lower() else re.IGNORECASE
            text = "".join(self._parts)
            self._parts = [text]
            self._matches = [match.span() for match in re.finditer(re.escape(pattern), text, flags)]

    def place(self, match: int) -> Place:
        """Where a match begins."""
        return self._place(self._matches[match][0])

    def first_from(self, place: Place) -> int:
        """The first match that begins at `place` or behind it; the first of all where none does. There must be one."""
        said = bisect_left(self._said, place.span)
        begin = self._begins[said] if said < len(self._begins) else self._length
        if said < len(self._said) and self._said[said] == place.span:
            begin += place.offset
        found = bisect_left(self._matches, (begin, 0))
        return found if found < len(self._matches) else 0

    def within(self, begin: Place, length: int) -> list[tuple[int, int, int]]:
        """The parts of a piece of a span, `length` characters from `begin`, that belong to matches: the first and the
        last character's place in the piece, the latter not included, and the match's number."""
        said = bisect_left(self._said, begin.span)
        if said == len(self._said) or self._said[said] != begin.span:
            return []
        start = self._begins[said] + begin.offset
        first = max(0, bisect_right(self._matches, (start, start)) - 1)
        parts = []
        for number in range(first, len(self._matches)):
            match_begin, match_end = self._matches[number]
            if match_begin >= start + length:
                break
            if match_end > start:
                parts.append((max(match_begin - start, 0), min(match_end - start, length), number))
        return parts

    def _place(self, position: int) -> Place:
        said = bisect_right(self._begins, position) - 1
        return Place(self._said[said], position - self._begins[said])

    def _take_in(self) -> None:
        """Put together what was said since the last time."""
        for index in range(self._taken, len(self._spans)):
            span = self._spans[index]
            if span.kind is Kind.SPEAKER:
                self._parts.append(_TURN_END)
                self._length += len(_TURN_END)
            elif span.kind in _SAID:
                self._said.append(index)
                self._begins.append(self._length)
                self._parts.append(span.text)
                self._length += len(span.text)
        self._taken = len(self._spans)
