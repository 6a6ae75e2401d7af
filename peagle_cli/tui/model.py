"""What the transcript holds: spans of text, each with what happened to it. Pure: knows events, no screen.

A transcript grows, or is cut back and grows again as it did before. Whoever draws it can therefore keep what it drew
of the spans that there still are, and look at what came since.
"""

from array import array
from bisect import bisect_right
from collections.abc import Callable
from enum import StrEnum
from typing import Literal, NamedTuple, TypeVar

from peagle_cli.recording.lines import PackedLines
from peagle_cli.text import one_line, printable
from peagle_cli.trace.events import Changed, DraftBatch, Event, Sampling, Token, decode, encode
from peagle_cli.tui.packed import Packed

BATCH_BAR = "▏"
TAB_COLUMNS = 4
_UNBROKEN = str.maketrans({" ": "\N{NO-BREAK SPACE}"})


class Kind(StrEnum):
    """What a span is, and so how it is drawn.

    `ACCEPTED`, `BONUS`, `CORRECTION` and `PLAIN` are tokens of the reply: a draft that the target agreed with, the
    target's free token after a batch accepted whole, its own token where it rejected a draft, and a token of a step
    that drafted nothing. `REJECTED` is the draft that the target disagreed with, `DISCARDED` are those behind it, which
    were never tested; both are not part of the reply.
    """

    PROMPT = "prompt"
    ACCEPTED = "accepted"
    BONUS = "bonus"
    CORRECTION = "correction"
    PLAIN = "plain"
    REJECTED = "rejected"
    DISCARDED = "discarded"
    BAR = "bar"
    CHANGE = "change"
    SPEAKER = "speaker"
    NOTE = "note"
    ERROR = "error"


Rejected = Literal["first", "all", "none"]
"""Which drafts to show besides the reply: those that the target disagreed with, also those behind them, or none."""

HIDDEN: dict[Rejected, frozenset[Kind]] = {
    "first": frozenset({Kind.DISCARDED}),
    "all": frozenset(),
    "none": frozenset({Kind.REJECTED, Kind.DISCARDED}),
}
MARKS = {Kind.REJECTED: ("[-", "-]"), Kind.DISCARDED: ("(-", "-)")}
"""What encloses them where there is no colour: a terminal that knows none may not know how to strike through either.
As wdiff has them."""


class Span(NamedTuple):
    """A piece of the transcript, safe to show. Newlines end a line.

    For tokens and rejected drafts, `reply` counts the transcript's replies from 0, `step` is the batch's, and
    `position` the place in the batch: below `accepted` for accepted drafts, `accepted` for the target's own token,
    the drafted position for rejected ones. Other spans have -1.
    """

    text: str
    kind: Kind
    reply: int = -1
    step: int = -1
    position: int = -1


class Spot(NamedTuple):
    """A token of a transcript: of its batch, counted from 0, the draft at `place`, or the target's own behind them."""

    batch: int
    place: int


def token_kind(batch: DraftBatch, position: int) -> Kind:
    """What the token at `position` of `batch.tokens` is."""
    if not batch.drafted:
        return Kind.PLAIN
    if position < batch.accepted:
        return Kind.ACCEPTED
    return Kind.BONUS if batch.accepted == len(batch.drafted) else Kind.CORRECTION


GREEDY = Sampling()
_Item = TypeVar("_Item")
_DRAFTS = frozenset({Kind.ACCEPTED, Kind.REJECTED, Kind.DISCARDED})
_LEGEND = (
    ((BATCH_BAR, Kind.BAR), ("one step", Kind.NOTE)),
    (("accepted", Kind.ACCEPTED), (" draft", Kind.NOTE)),
    (("rejected", Kind.REJECTED), (" draft", Kind.NOTE)),
    (("correction", Kind.CORRECTION), (" by the model", Kind.NOTE)),
    (("bonus", Kind.BONUS), (" when all were right", Kind.NOTE)),
    (("plain", Kind.PLAIN), (" without drafts", Kind.NOTE)),
)


class TranscriptMark(NamedTuple):
    """Where a transcript was."""

    spans: int
    batches: int
    recalls: int
    samplings: int
    reply: int
    column: int
    changes: dict[str, Changed]


class Transcript:
    """A conversation as spans, in reading order. `batches` has the span with which each batch begins."""

    def __init__(self) -> None:
        self.spans = Packed(Span)
        self.batches: list[int] = []
        self._kept = PackedLines()
        self._recalls: list[tuple[int, Callable[[int], Event]]] = []  # from which batch on
        self._places = array("q")  # of the batches, for those who recall them
        self._samplings: list[tuple[int, Sampling]] = []  # from which batch on
        self._reply = -1
        self._column = 0  # of the reply's own text, for tab stops
        self._changes: dict[str, Changed] = {}

    def add_legend(self) -> None:
        """What the reader is about to see, in its own styles."""
        for entry in _LEGEND:
            for text, kind in entry:
                self._add(text.translate(_UNBROKEN), kind)
            self._add("   ", Kind.NOTE)

    def add_turn(self, speaker: str) -> None:
        """Begin a turn: an empty line after the one before, then its speaker's name."""
        gap = "\n\n" if self.spans else ""
        self._add(f"{gap}{printable(speaker)}\n", Kind.SPEAKER)
        self._column = 0

    def add_prompt(self, text: str) -> None:
        """The words of the user."""
        self._add(self._with_tab_stops(printable(text)), Kind.PROMPT)

    def add_words(self, text: str) -> None:
        """A reply of which nothing but its words is known."""
        self._add(self._with_tab_stops(printable(text)), Kind.PLAIN)

    def begin_reply(self, sampling: Sampling = GREEDY) -> None:
        """From here on, batches belong to a new reply, whose tokens are chosen as `sampling` says."""
        self._reply += 1
        self._samplings.append((len(self.batches), sampling))
        self._changes.clear()

    def add_change(self, changed: Changed) -> None:
        """Remember a change, to be marked where the next batch begins; changes in between become one."""
        first = self._changes.pop(changed.what, changed)
        if first.old != changed.new:
            self._changes[changed.what] = Changed(changed.lane, changed.what, first.old, changed.new)

    def add_batch(self, batch: DraftBatch, recall: Callable[[int], Event] | None = None, place: int = 0) -> None:
        """One step: its bar, the accepted drafts, the rejected ones where they were drafted, the target's token.

        `recall` brings the batch back from its `place` when it is looked at; without it, the transcript keeps
        the batch.
        """
        for changed in self._changes.values():
            self._add(" " + f"── {changed.words} ──".translate(_UNBROKEN), Kind.CHANGE)
        self._changes.clear()
        self.batches.append(len(self.spans))
        if recall is None:
            recall, place = self._recall, len(self._kept)
            self._kept.append(encode(batch) + b"\n")
        self._places.append(place)
        if not self._recalls or self._recalls[-1][1] != recall:
            self._recalls.append((len(self._places) - 1, recall))
        tokens, rejected = batch.tokens, batch.rejected
        if not any(token.text for token in (*tokens, *rejected)):
            return
        self._add(BATCH_BAR, Kind.BAR)
        for position, token in enumerate(tokens[: batch.accepted]):
            self._add_token(token, batch, position)
        for position, token in enumerate(rejected, batch.accepted):
            kind = Kind.REJECTED if position == batch.accepted else Kind.DISCARDED
            self._add(one_line(token.text), kind, batch.step, position)
        for token in tokens[batch.accepted :]:
            self._add_token(token, batch, batch.accepted)

    def mark(self) -> TranscriptMark:
        """Where it is now."""
        return TranscriptMark(
            len(self.spans),
            len(self.batches),
            len(self._recalls),
            len(self._samplings),
            self._reply,
            self._column,
            dict(self._changes),
        )

    def become(self, other: "Transcript", mark: TranscriptMark) -> None:
        """Be what `other` was at `mark`. One of the two must begin with all that the other has."""
        self.spans.become(other.spans, mark.spans)
        _become(self.batches, other.batches, mark.batches)
        _become(self._recalls, other._recalls, mark.recalls)
        del self._places[mark.batches :]
        self._places += other._places[len(self._places) : mark.batches]
        _become(self._samplings, other._samplings, mark.samplings)
        self._reply, self._column, self._changes = mark.reply, mark.column, dict(mark.changes)

    def spans_of(self, batches: range) -> range:
        """The spans of some batches that follow each other; what stands behind the last is not its own."""
        begin = self.batches[batches[0]]
        behind = self.batches[batches[-1] + 1] if batches[-1] + 1 < len(self.batches) else len(self.spans)
        while behind > begin and self.spans[behind - 1].step < 0:
            behind -= 1
        return range(begin, behind)

    def batch(self, number: int) -> DraftBatch:
        """A batch as it was added."""
        _, recall = self._recalls[bisect_right(self._recalls, number, key=lambda begin: begin[0]) - 1]
        batch = recall(self._places[number])
        assert isinstance(batch, DraftBatch)
        return batch

    def sampling(self, batch: int) -> Sampling:
        """How the tokens of a batch were chosen."""
        reply = bisect_right(self._samplings, batch, key=lambda begin: begin[0]) - 1
        return self._samplings[reply][1] if reply >= 0 else GREEDY

    def spot_of(self, span: int) -> Spot | None:
        """The token that a span shows, of a bar the first behind it; None where it shows none."""
        if self.spans[span].kind is Kind.BAR and span + 1 < len(self.spans):
            span += 1
        shown = self.spans[span]
        if shown.step < 0:
            return None
        number = bisect_right(self.batches, span) - 1
        return Spot(number, shown.position if shown.kind in _DRAFTS else len(self.batch(number).drafted))

    def span_of(self, spot: Spot) -> int | None:
        """The span that shows a token; None where it adds no text."""
        for number in self.spans_of(range(spot.batch, spot.batch + 1)):
            if self.spans[number].step >= 0 and self.spot_of(number) == spot:
                return number
        return None

    def add_note(self, text: str, kind: Kind = Kind.NOTE) -> None:
        """A remark on its own line, after the reply's text."""
        self._add(f"\n{printable(text)}", kind)

    def _recall(self, place: int) -> Event:
        return decode(self._kept[place])

    def _add_token(self, token: Token, batch: DraftBatch, position: int) -> None:
        text = self._with_tab_stops(printable(token.text))
        self._add(text, token_kind(batch, position), batch.step, position)

    def _add(self, text: str, kind: Kind, step: int = -1, position: int = -1) -> None:
        if text:
            self.spans.append(Span(text, kind, self._reply if step >= 0 else -1, step, position))

    def _with_tab_stops(self, text: str) -> str:
        if "\t" not in text:
            newline = text.rfind("\n")
            self._column = self._column + len(text) if newline < 0 else len(text) - newline - 1
            return text
        parts = []
        for char in text:
            part = " " * (TAB_COLUMNS - self._column % TAB_COLUMNS) if char == "\t" else char
            self._column = 0 if char == "\n" else self._column + len(part)
            parts.append(part)
        return "".join(parts)


def _become(own: list[_Item], others: list[_Item], count: int) -> None:
    """Let `own` be the first `count` items of `others`, which begins with it, or with which it begins."""
    del own[count:]
    own += others[len(own) : count]
