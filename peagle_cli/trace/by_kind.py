"""Acceptance by draft position and kind of token: a fold over a lane's events, like `metrics.py`."""

from collections.abc import Iterable

import msgspec

from peagle_cli.trace.events import UNKNOWN_ID, DraftBatch, Event, Started
from peagle_cli.trace.kinds import Place, TokenKind, read


class KindAcceptance(msgspec.Struct, frozen=True):
    """How drafts of one kind of token fared, position by position.

    `drafts[i]` counts the drafts whose token at position i was of the kind; `accepted[i]` counts those of them that
    accepted it and all before it. As in `Metrics.per_position_acceptance`, which these add up to over all kinds, the
    share is not conditional on the positions before it.
    """

    drafts: tuple[int, ...]
    accepted: tuple[int, ...]


class AcceptanceByKind:
    """A running fold over the events of one lane, or of replies that follow each other: each begins a new text.

    A drafted token's kind is the one that it would have had in the reply, behind the drafts before it. Steps of which
    an engine does not tell all drafts are left out: those that it tells are the accepted ones.
    """

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.positions = 0
        self._place = Place()
        self._counts: dict[TokenKind, list[list[int]]] = {kind: [] for kind in TokenKind}  # drafts, accepted
        for event in events:
            self.add(event)

    def add(self, event: Event) -> None:
        """Take one more event into account."""
        if isinstance(event, Started):
            self._place = Place()
        elif isinstance(event, DraftBatch):
            self._add_drafts(event)
            for token in event.tokens:
                _, self._place = read(self._place, token.text)

    def counts(self, kind: TokenKind, position: int) -> tuple[int, int]:
        """Drafts whose token at `position` was of this kind, and how many of them accepted it and all before it."""
        column = self._counts[kind]
        return (column[position][0], column[position][1]) if position < len(column) else (0, 0)

    def by_kind(self) -> dict[TokenKind, KindAcceptance]:
        """All counts as of now, for every kind, drafted or not."""
        return {
            kind: KindAcceptance(tuple(n for n, _ in columns), tuple(n for _, n in columns))
            for kind, columns in self._counts.items()
        }

    def _add_drafts(self, batch: DraftBatch) -> None:
        if any(token.id == UNKNOWN_ID for token in batch.drafted):
            return
        self.positions = max(self.positions, len(batch.drafted))
        place = self._place
        for position, token in enumerate(batch.drafted):
            kind, place = read(place, token.text)
            columns = self._counts[kind]
            while len(columns) <= position:
                columns.append([0, 0])
            columns[position][0] += 1
            columns[position][1] += position < batch.accepted
