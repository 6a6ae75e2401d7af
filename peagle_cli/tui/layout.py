"""The transcript as rows of terminal cells: wrapping at word boundaries, as the text arrives. Pure.

Only the last row can still change when spans are added, and a word at its end can move to a new row. A layout can
begin in the midst of a transcript, and can be cut back to the spans before some place.
"""

import re
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from rich.cells import cell_len, get_character_cell_size, split_graphemes

from peagle_cli.tui.model import Kind, Span
from peagle_cli.tui.packed import PackedRows

_CHUNK = re.compile(r" +|[^ ]+")
_JOINER = "\u200d"
_EMOJI_STYLE = "\ufe0f"
_CARRIER = "\N{DOTTED CIRCLE}"
"""What carries a mark that has no character to stand on, as in Unicode's own charts."""

Marks = Mapping[Kind, tuple[str, str]]
"""What to put before and behind the spans of a kind."""


class Fragment(NamedTuple):
    """A part of a span within one row, `width` cells wide; `span` is its index in the transcript, `start` the place of
    its first character in the span's text."""

    text: str
    kind: Kind
    width: int
    span: int
    start: int


Row = list[Fragment]


class Layout:
    """Rows of at most `width` cells. A row is broken between words, inside a word only where it is longer than a row.

    Spaces at the end of a full row are dropped, and so are spans of a `hidden` kind. Wide characters may be broken
    before and after. Marks belong to the span that they enclose, but not to its text.

    `begin` is the first span, `end` the one behind the last of those that are laid out.
    """

    def __init__(self, width: int, hidden: Collection[Kind] = (), marks: Marks | None = None, begin: int = 0) -> None:
        self.width = max(2, width)  # the widest character has two cells
        self.begin = begin
        self._hidden = hidden
        self._marks = marks or {}
        self.rows = PackedRows(Fragment)
        self._first_spans = [begin]  # the span in which each row begins
        self._next_span = begin
        self._start = 0  # in the text of that span, of what is added next
        self._used = 0  # cells in the last row
        self._word = 0  # where in the last row its last word begins
        self._word_width = 0

    @property
    def end(self) -> int:
        """The span behind the last that has been taken in."""
        return self._next_span

    def extend(self, spans: Sequence[Span], end: int | None = None) -> int:
        """Take in the spans of a transcript that have not been yet, up to `end`. Returns the first row that changed."""
        dirty = len(self.rows) - 1
        end = len(spans) if end is None else min(end, len(spans))
        for index in range(self._next_span, end):
            span = spans[index]
            self._next_span = index
            if span.kind not in self._hidden:
                before, behind = self._marks.get(span.kind, ("", ""))
                self._mark(before, span.kind, 0)
                self._push(span)
                self._mark(behind, span.kind, len(span.text))
        self._next_span = max(self._next_span, end)
        return dirty

    def cut(self, end: int) -> int:
        """Forget the span `end` and all behind it, and some rows before it, which `extend` lays out again.

        Returns the first row that is gone.
        """
        if end >= self._next_span:
            return len(self.rows)
        # In the last row that begins before `end` there may be a word that only what is forgotten moved there.
        row = max(0, bisect_left(self._first_spans, end) - 2)
        while row and not self._begins_with_span(row):
            row -= 1
        self._next_span = self.rows[row][0].span if row else self.begin
        self.rows.cut(row)
        del self._first_spans[row + 1 :]
        self._used = self._word = self._word_width = 0
        return row

    def _begins_with_span(self, row: int) -> bool:
        """Whether all that is known of a row follows from the spans that begin in it."""
        first = next(iter(self.rows[row]), None)
        before = self.rows[row - 1]
        return bool(first and first.start == 0 and before and before[-1].span != first.span)

    def span_at(self, row: int) -> int:
        """The span in which a row begins."""
        return self._first_spans[row]

    def row_at(self, span: int) -> int:
        """The first row that begins in `span`; where none does, the row that holds it."""
        row = bisect_left(self._first_spans, span)
        begins = row < len(self.rows) and self._first_spans[row] == span
        return row if begins else max(0, row - 1)

    def row_of(self, span: int, offset: int) -> int:
        """The row that shows the character at `offset` of the text of `span`; the nearest one where none does."""
        row = max(0, self.row_at(span) - 1)  # the span may have begun in the row before
        for later in range(row, len(self.rows)):
            if self._first_spans[later] > span:
                break
            if any(part.span == span and part.start <= offset for part in self.rows[later]):
                row = later
        return row

    def _mark(self, mark: str, kind: Kind, start: int) -> None:
        if mark:
            self._start = start
            self._add_word(mark, cell_len(mark), kind)

    def _push(self, span: Span) -> None:
        end = 0
        for number, line in enumerate(span.text.split("\n")):
            if number:
                self._break()
            self._start = end
            rest = self._joined(line)
            end += len(line) + 1
            start = end - 1 - len(rest)
            for text, width, wide in _chunks(rest):
                self._start, start = start, start + len(text)
                if text[0] == " ":
                    self._add_spaces(width, span.kind)
                elif wide:
                    self._end_word()
                    self._add_word(text, width, span.kind)
                    self._end_word()
                else:
                    self._add_word(text, width, span.kind)

    def _joined(self, text: str) -> str:
        """`text` without the beginning that belongs to the last character of the row; that has been added there."""
        row = self.rows.last
        if text and extends("", text[0]) and all(part.kind is Kind.BAR for part in row):
            self._append(_CARRIER, 1, Kind.NOTE)
        last = len(row) - 1
        while last >= 0 and row[last].kind is Kind.BAR:
            last -= 1
        if not text or text.isascii() or last < 0:
            return text
        end = 0
        while end < len(text) and extends(row[last].text + text[:end], text[end]):
            end += 1
        if end:
            before = row[last]
            joined = before.text + text[:end]
            row[last] = before._replace(text=joined, width=cell_len(joined))
            self._used += row[last].width - before.width
        return text[end:]

    def _add_spaces(self, count: int, kind: Kind) -> None:
        count = min(count, self.width - self._used)
        if count > 0:
            self._append(" " * count, count, kind)
        self._end_word()

    def _add_word(self, text: str, width: int, kind: Kind) -> None:
        if kind is Kind.BAR and self._used == self.width:
            self._end_word()  # a full row stays as it is: the bar begins the next
        if self._used + width > self.width and self._word > 0 and self._word_width + width <= self.width:
            self._break_before_word()
        while self._used + width > self.width:
            head, head_width = _head(text, self.width - self._used)
            if head:
                self._append(head, head_width, kind)
            self._break()
            text, width = text[len(head) :], width - head_width
        if text:
            self._append(text, width, kind)
            self._word_width += width

    def _end_word(self) -> None:
        self._word = len(self.rows.last)
        self._word_width = 0

    def _append(self, text: str, width: int, kind: Kind) -> None:
        self.rows.last.append(Fragment(text, kind, width, self._next_span, self._start))
        self._start += len(text)
        self._used += width

    def _break(self) -> None:
        self.rows.begin()
        self._first_spans.append(self._next_span)
        self._used = self._word = self._word_width = 0

    def _break_before_word(self) -> None:
        row = self.rows.last
        word, width = row[self._word :], self._word_width
        del row[self._word :]
        self._break()
        if word:
            self.rows.last.extend(word)
            self._first_spans[-1] = word[0].span
        self._used = self._word_width = width


def _chunks(text: str) -> Iterator[tuple[str, int, bool]]:
    """Runs of spaces, words, and single wide characters: the text, its width in cells, whether it is a wide one."""
    for chunk in _CHUNK.findall(text):
        if chunk.isascii():
            yield chunk, len(chunk), False
            continue
        start = end = width = 0
        for first, last, cells in split_graphemes(chunk)[0]:
            if cells > 1:
                if end > start:
                    yield chunk[start:end], width, False
                yield chunk[first:last], cells, True
                start, width = last, 0
            else:
                width += cells
            end = last
        if end > start:
            yield chunk[start:end], width, False


def _head(text: str, width: int) -> tuple[str, int]:
    """The longest beginning of `text` within `width` cells, and its width."""
    end = used = 0
    for _, last, cells in split_graphemes(text)[0]:
        if used + cells > width:
            break
        end, used = last, used + cells
    return text[:end], used


def extends(before: str, char: str) -> bool:
    """Whether `char` is drawn as part of the last character of `before`. A joiner joins a wide character to another
    wide one alone: behind a letter, terminals draw it for itself."""
    if char in (_JOINER, _EMOJI_STYLE) or get_character_cell_size(char) == 0:
        return True
    if not before.endswith(_JOINER):
        return False
    joined = split_graphemes(before.rstrip(_JOINER))[0]
    return get_character_cell_size(char) < 2 or bool(joined and joined[-1][2] == 2)
