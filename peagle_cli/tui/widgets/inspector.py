"""The inspector: one token of a transcript, what drafter and target thought of it, and why it was kept or not."""

from collections.abc import Sequence
from textwrap import wrap
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from textual.binding import Binding, BindingType

from peagle_cli.trace.events import Candidate, Token
from peagle_cli.trace.inspection import Entropy, Inspection, entropy, inspect, places
from peagle_cli.trace.rounds import name_of
from peagle_cli.tui.model import Spot
from peagle_cli.tui.widgets.batches import word_of
from peagle_cli.tui.widgets.panel import Panel, Pieces, bar
from peagle_cli.tui.widgets.transcript import TranscriptView

_MOST = 5  # candidates
_LOW = 17  # lines, below which everything moves together
_GAP, _PERCENT = 2, 5  # cells
_WORDS = {
    "accepted": "✓ accepted",
    "rejected": "✗ rejected",
    "discarded": "· discarded",
    "correction": "→ correction",
    "bonus": "+ bonus",
    "plain": "plain",
}
_INKS = {"discarded": "off", "plain": "value"}
_TOKEN, _STEP, _REJECTION = (Binding.Group(name, compact=True) for name in ("token", "step", "rejection"))


class Inspector(Panel, can_focus=True):
    """Opened on a transcript; while it has the focus, keys go from token to token, which the transcript marks."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "token(-1)", "Token before", key_display="←", id="inspect.left", group=_TOKEN),
        Binding("right", "token(1)", "Next token", key_display="→", id="inspect.right", group=_TOKEN),
        Binding("up", "step(-1)", "Step before", key_display="↑", id="inspect.up", group=_STEP),
        Binding("down", "step(1)", "Next step", key_display="↓", id="inspect.down", group=_STEP),
        Binding("p", "rejection(-1)", "Rejection before", id="inspect.previous", group=_REJECTION),
        Binding("n", "rejection(1)", "Next rejection", id="inspect.next", group=_REJECTION),
        Binding("l", "lane", "lane", tooltip="The next lane of a race", id="inspect.lane"),
        Binding("escape,i,q", "close", "close", key_display="esc", tooltip="Close the inspector", id="inspect.close"),
    ]

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self.display = False
        self._view: TranscriptView | None = None
        self._spot: Spot | None = None
        self._seen: Inspection | None = None

    @property
    def seen(self) -> Inspection | None:
        """The token that is looked at."""
        return self._seen

    def inspect(self, view: TranscriptView, spot: Spot | None = None) -> None:
        """Look at a token of `view`; without one at that of the last rejection, or, where nothing was rejected, at the
        last token. Does nothing while there is no token."""
        count = len(view.transcript.batches)
        if not count:
            return
        if self._view not in (None, view):
            self._unmark()
        self._view = view
        if not self.display:
            self.display = True
            self.screen.set_class(True, "-inspecting")
        self.focus()
        self._look_at(spot or self._rejection(count, -1) or Spot(count - 1, 0))
        self.screen.refresh_bindings()

    # What the user does

    def action_token(self, by: int) -> None:
        """The token before or after, across steps."""
        if self._spot is None or self._view is None:
            return
        batch, place = self._spot.batch, self._spot.place + by
        if place < 0 and batch:
            self._look_at(Spot(batch - 1, places(self._view.transcript.batch(batch - 1)) - 1))
        elif self._seen and place >= places(self._seen.batch):
            self._look_at(Spot(batch + 1, 0))
        elif place >= 0:
            self._look_at(Spot(batch, place))

    def action_step(self, by: int) -> None:
        """The same place in the step before or after; its last where it is shorter."""
        if self._spot and self._view and 0 <= self._spot.batch + by < len(self._view.transcript.batches):
            batch = self._spot.batch + by
            self._look_at(Spot(batch, min(self._spot.place, places(self._view.transcript.batch(batch)) - 1)))

    def action_rejection(self, by: int) -> None:
        """The rejected draft before or after."""
        if self._spot and (found := self._rejection(self._spot.batch, by, self._spot.place)):
            self._look_at(found)

    def action_lane(self) -> None:
        """Another lane of the race."""
        views = self._lanes()
        if self._view in views:
            self.inspect(views[(views.index(self._view) + 1) % len(views)])

    def action_close(self) -> None:
        """Close."""
        self._unmark()
        view, self._view = self._view, None
        self._spot = self._seen = None
        self.display = False
        self.screen.set_class(False, "-inspecting")
        self.screen.set_focus(view if view and view.can_focus else None)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer lanes where there are several."""
        return len(self._lanes()) > 1 if action == "lane" else True

    def _lanes(self) -> list[TranscriptView]:
        """Those of a race with tokens to look at, also where they make way for the inspector."""
        views = self.screen.query("LanePane TranscriptView").results(TranscriptView)
        return [view for view in views if view.transcript.batches]

    def _unmark(self) -> None:
        if self._view is not None:
            self._view.show_batches(range(0))

    def _rejection(self, batch: int, by: int, place: int = 0) -> Spot | None:
        """The nearest rejected draft before or after a place."""
        assert self._view is not None
        transcript = self._view.transcript
        while 0 <= batch < len(transcript.batches) or (by < 0 and batch == len(transcript.batches)):
            if batch < len(transcript.batches):
                step = transcript.batch(batch)
                apart = step.accepted - place if self._spot and batch == self._spot.batch else by
                if step.rejected and apart * by > 0:
                    return Spot(batch, step.accepted)
            batch += by
        return None

    def _look_at(self, spot: Spot) -> None:
        assert self._view is not None
        transcript = self._view.transcript
        if spot.batch >= len(transcript.batches):
            return
        self._spot = spot
        self._seen = inspect(transcript.batch(spot.batch), spot.place, transcript.sampling(spot.batch))
        self._view.choose(spot)
        self.redraw()

    # What is shown

    def draw(self) -> list[Pieces]:
        """Draw it."""
        if (seen := self._seen) is None:
            return []
        if self.size.height < _LOW:
            return [self._title(seen, _costs(seen)), self._step(seen), *self._verdict(seen), *self._opinions(seen, 3)]
        return [
            self._title(seen, ""),
            self._step(seen),
            [],
            *self._verdict(seen),
            [],
            *self._opinions(seen, _MOST),
            [],
            *self._whole_costs(seen),
        ]

    def _title(self, seen: Inspection, costs: str) -> Pieces:
        batch = seen.batch
        lane = name_of((batch.method, batch.depth))
        return self.spread([self.ink(f"{lane}  step {batch.step}", "title")], [self.ink(f"  {costs}", "label")])

    def _step(self, seen: Inspection) -> Pieces:
        """All tokens of the step, the one that is looked at in view."""
        batch = seen.batch
        pieces: Pieces = []
        widths: list[int] = []
        for place in range(places(batch)):
            each = batch.bonus if place == len(batch.drafted) else batch.drafted[place]
            arrow = "→ " if place == len(batch.drafted) and place else ""
            text = f"{arrow}{word_of(each)}"
            ink = _ink_of(_fate_at(batch.accepted, len(batch.drafted), place))
            widths.append(cell_len(text) + 1)
            pieces += [self.ink(text, "chosen" if place == seen.place else ink), self.ink(" ", "label")]
        first = 0
        while first < seen.place and sum(widths[first : seen.place + 1]) > self.size.width:
            first += 1
        return pieces[2 * first :]

    def _verdict(self, seen: Inspection) -> list[Pieces]:
        """What became of the token, and why."""
        behind = ""
        if seen.fate == "rejected" and seen.behind:
            behind = f" {seen.behind} draft{'s' * (seen.behind != 1)} behind it went unseen."
        reason = wrap(seen.reason + behind, max(10, self.size.width), max_lines=4, placeholder=" …")
        drafted = len(seen.batch.drafted)
        place = f"draft {seen.place + 1} of {drafted}" if seen.place < drafted else "the target's own"
        word = self.ink(f"{word_of(seen.token)}  {_WORDS[seen.fate]}", _ink_of(seen.fate))
        return [self.spread([word], [self.ink(f"  {place}", "label")]), *([self.ink(line, "value")] for line in reason)]

    def _opinions(self, seen: Inspection, most: int) -> list[Pieces]:
        """The candidates of drafter and target, side by side, with the models' entropies."""
        if not seen.drafter and not seen.target:
            return [[self.ink("No candidates were recorded for this step.", "label")]]
        half = (self.size.width - _GAP) // 2
        low = most < _MOST
        left = self._side(seen.drafter, seen.token, seen.q, half, most, "draft")
        right = self._side(seen.target, seen.token, seen.p, half, most, "target")
        heads = [f"{name}{_bits(known) if low else ''}" for name, known in _sides(seen)]
        rows: list[Pieces] = [[self.ink(heads[0].ljust(half + _GAP), "draft"), self.ink(heads[1], "target")]]
        for number in range(max(len(left), len(right))):
            row = left[number] if number < len(left) else [self.ink(" " * half, "off")]
            rows.append([*row, self.ink(" " * _GAP, "off"), *(right[number] if number < len(right) else [])])
        if not low:
            bits = [_bits(known).removeprefix(", ") for _, known in _sides(seen)]
            rows.append([self.ink(bits[0].ljust(half + _GAP), "label"), self.ink(bits[1], "label")])
        return rows

    def _whole_costs(self, seen: Inspection) -> list[Pieces]:
        batch, each = seen.batch, seen.seconds_per_token
        lines: list[Pieces] = [
            [
                self.ink(f"draft {batch.draft_s * 1e3:.1f} ms", "draft"),
                self.ink(" + ", "label"),
                self.ink(f"verify {batch.verify_s * 1e3:.1f} ms", "target"),
            ]
        ]
        if each is not None:
            lines.append([self.ink(f"{each * 1e3:.1f} ms per token", "label")])
        return lines

    def _side(
        self, candidates: Sequence[Candidate], token: Token, own: float | None, cells: int, most: int, ink: str
    ) -> list[Pieces]:
        """One model's candidates; the token itself in its own row at the end where it is not among them."""
        shown = list(candidates[:most])
        if own is not None and all(each.id != token.id for each in shown):
            shown = [*shown[: most - 1], Candidate(token.id, token.text, own)]
        if not shown:
            return [[self.ink(set_cell_size("nothing drafted here", cells), "off")]]
        word = max(5, min(14, (cells - _PERCENT) // 2))
        track = max(0, cells - word - _PERCENT - 1)
        return [
            [
                self.ink(
                    set_cell_size(word_of(Token(each.id, each.text)), word),
                    "hero" if each.id == token.id else "value",
                ),
                self.ink(" " + bar(each.prob, track), ink),
                self.ink(_percent(each.prob).rjust(_PERCENT), "hero" if each.id == token.id else "label"),
            ]
            for each in shown
        ]


def _sides(seen: Inspection) -> tuple[tuple[str, Entropy | None], tuple[str, Entropy | None]]:
    return ("drafter", entropy(seen.drafter)), ("target", entropy(seen.target))


def _costs(seen: Inspection) -> str:
    """Milliseconds of drafting and verifying, and what each token cost of them, where there is little room."""
    batch, each = seen.batch, seen.seconds_per_token
    whole = f"{batch.draft_s * 1e3:.1f} + {batch.verify_s * 1e3:.1f} ms"
    return whole if each is None else f"{whole}, {each * 1e3:.1f} ms per token"


def _percent(share: float) -> str:
    return "<1%" if 0 < share < 0.005 else f"{share:.0%}"


def _fate_at(accepted: int, drafted: int, place: int) -> str:
    if place == drafted:
        return "plain" if not drafted else "bonus" if accepted == drafted else "correction"
    return "accepted" if place < accepted else "rejected" if place == accepted else "discarded"


def _ink_of(fate: str) -> str:
    return _INKS.get(fate, fate)


def _bits(known: Entropy | None) -> str:
    return f", entropy {'' if known.exact else '≥ '}{known.bits:.2f}" if known else ""
