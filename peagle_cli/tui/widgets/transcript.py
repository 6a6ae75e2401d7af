"""The transcript on screen: draws only the rows in view, and only those again that changed.

Of a long transcript that has to be laid out anew, for another width for instance, the part in view comes first, alone;
the whole takes its place once it has been laid out, a little at a time.
"""

from collections.abc import Iterator
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.cache import LRUCache
from textual.events import Click
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.timer import Timer

from peagle_cli.tui.layout import Fragment, Layout, Row
from peagle_cli.tui.model import HIDDEN, MARKS, Kind, Rejected, Spot, Transcript
from peagle_cli.tui.search import Place, Search
from peagle_cli.tui.widgets.typed import PassesOnTyping

_CACHED_ROWS = 2000
_AT_ONCE = 4000  # spans that are laid out without a pause
_PER_TURN = 1000  # spans that are, of those out of view, before others have their turn
_TURNS_PER_S = 30
_LINE_WITHIN = 1000  # spans among which the beginning of a line is looked for
_NEAR = 2  # rows
DEPTH = Binding.Group("depth", compact=True)
_MATCH, _CURRENT = "match", "current"  # what was searched, and the match that the reader is at
_BATCH = "batch"  # the batches that are looked at on the timeline, or that of the token being inspected
_CHOSEN = "chosen"  # the token being inspected


class TranscriptView(PassesOnTyping, ScrollView, can_focus=True):
    """Shows a `Transcript` and follows its end, until the reader scrolls up; at the bottom it follows again.

    While it has the focus, single letters act on the reply.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"transcript--{kind}" for kind in (*Kind, _MATCH, _CURRENT, _BATCH, _CHOSEN)
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("i", "screen.inspect", "inspect", tooltip="Why each token was kept or not", id="watch.inspect"),
        Binding("left_square_bracket", "screen.deepen(-1)", "shallower", key_display="[", id="watch.less", group=DEPTH),
        Binding("right_square_bracket", "screen.deepen(1)", "deeper", key_display="]", id="watch.more", group=DEPTH),
        Binding("m", "screen.next_method", "method", id="watch.method"),
        Binding("space", "screen.pause", "pause", key_display="space", id="watch.pause"),
        Binding("full_stop", "screen.step", "step", key_display=".", id="watch.step"),
        Binding("less_than_sign", "screen.slower", "Slow motion, slower", show=False, id="watch.slower"),
        Binding("greater_than_sign", "screen.faster", "Faster", show=False, id="watch.faster"),
        Binding("r", "screen.rejected", "rejected", id="watch.rejected"),
        Binding("v", "screen.view", "answer", tooltip="The answer as it is meant to be read", id="watch.view"),
        Binding("y", "screen.copy('answer')", "Copy the answer", show=False, id="watch.copy"),
        Binding("c", "screen.copy('code')", "Copy a block of code", show=False, id="watch.copy-code"),
        Binding("n", "screen.next_match(1)", "Next match", show=False, id="watch.next-match"),
        Binding("N", "screen.next_match(-1)", "Match before", show=False, id="watch.previous-match"),
        Binding("escape", "screen.end_search", show=False, id="watch.end-search"),
        Binding("t", "screen.timeline", "Along the timeline", show=False, id="watch.timeline"),
        Binding("f", "screen.figures", "Timeline and figures", show=False, id="watch.figures"),
        Binding("enter", "screen.write", "write", key_display="⏎", tooltip="Go to the prompt", id="watch.write"),
        Binding("home", "scroll_home", "To the beginning", show=False, id="watch.top"),
        Binding("end", "follow", "To the end", show=False, id="watch.bottom"),
        Binding("up", "scroll_up", "A line up", show=False, id="watch.up"),
        Binding("down", "scroll_down", "A line down", show=False, id="watch.down"),
    ]

    rejected: reactive[Rejected] = reactive[Rejected]("first", init=False)

    class Followed(Message):
        """The view began or ceased to follow the transcript's end."""

    class Pressed(Message):
        """A token was clicked on."""

        def __init__(self, view: "TranscriptView", spot: Spot) -> None:
            super().__init__()
            self.view = view
            self.spot = spot

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self.following = True
        self._transcript = Transcript()
        self._layout = Layout(1)
        self._whole: Layout | None = None  # while a part is shown: the whole, as far as it has been laid out
        self._turns: Timer | None = None  # meanwhile
        self._changing = False
        self._strips: LRUCache[int, Strip] = LRUCache(_CACHED_ROWS)
        self._styles: dict[str, Style] = {}
        self._search: Search | None = None
        self._match: int | None = None
        self._looked_at = range(0)  # spans
        self._chosen: int | None = None  # span

    @property
    def transcript(self) -> Transcript:
        """What is shown."""
        return self._transcript

    @property
    def laid_out(self) -> bool:
        """Whether nothing of it has still to be laid out."""
        return self._whole is None

    def show(self, transcript: Transcript) -> None:
        """Show another transcript, from its end."""
        self._transcript = transcript
        self._looked_at, self._chosen = range(0), None
        self.following = True
        self._lay_out()

    def update(self) -> None:
        """Show what the transcript got since the last call; or what is left of it, where it was cut back."""
        layout, spans = self._layout, self._transcript.spans
        ahead = len(spans) - layout.end
        if self._whole is not None and ahead > 0 and not self.following:
            return  # the reader is in an earlier part
        if ahead > _AT_ONCE or len(spans) < layout.begin:
            self._lay_out(self._whole or layout)
            return
        first = min(layout.cut(len(spans)), layout.extend(spans))
        rows = len(layout.rows)
        for row in range(first, rows):
            self._strips.discard(row)
        self.virtual_size = Size(layout.width, rows)
        if self.following:
            self.scroll_end(animate=False, force=True, immediate=True, x_axis=False)
        self.refresh_lines(first, max(rows - first, self.size.height))

    def action_scroll_home(self) -> None:
        """Go to the beginning at once: Textual's own way waits for a moment without news, which may not come."""
        self._reach(0)
        self.scroll_to(y=0, animate=False, force=True, immediate=True)

    def action_follow(self) -> None:
        """Go to the end and stay there."""
        self.following = True
        self.scroll_end(animate=False, force=True, immediate=True, x_axis=False)

    def show_matches(self, search: Search | None, match: int | None = None) -> None:
        """Mark what was found, and bring the match of this number into view; None to mark nothing."""
        self._search, self._match = search, match
        self._strips.clear()
        self.refresh()
        if search is None or match is None:
            return
        place = search.place(match)
        self._reach(place.span)
        row = self._layout.row_of(place.span, place.offset)
        height = self.scrollable_content_region.height
        if not 0 <= row - round(self.scroll_y) < height:
            self.scroll_to(y=row - height // 3, animate=False, immediate=True)

    @property
    def first_place(self) -> Place:
        """Where the first row in view begins."""
        number = min(round(self.scroll_y), len(self._layout.rows) - 1)
        row = self._layout.rows[number]
        return Place(row[0].span, row[0].start) if row else Place(self._layout.span_at(number), 0)

    def show_batches(self, batches: range) -> None:
        """Mark batches of the transcript, counted from 0, and scroll to them unless they are in view. An empty range
        marks none."""
        self._looked_at = self._transcript.spans_of(batches) if batches else range(0)
        self._chosen = None
        self._strips.clear()
        self.refresh()
        if not batches:
            return
        self._reach(self._looked_at.start)
        row = self._layout.row_at(self._looked_at.start)
        height = self.scrollable_content_region.height
        if not 0 <= row - self.scroll_offset.y < height:
            self.scroll_to(y=row - height // 3, animate=False, immediate=True)

    def choose(self, spot: Spot) -> None:
        """Mark a token and its batch, in view."""
        self.show_batches(range(spot.batch, spot.batch + 1))
        self._chosen = self._transcript.span_of(spot)

    def on_click(self, event: Click) -> None:
        """Tell which token was clicked on."""
        offset = event.get_content_offset(self)
        number = offset.y + self.scroll_offset.y if offset else len(self._layout.rows)
        if offset is None or number >= len(self._layout.rows):
            return
        end = 0
        for fragment in self._layout.rows[number]:
            end += fragment.width
            if offset.x < end:
                if spot := self._transcript.spot_of(fragment.span):
                    self.post_message(self.Pressed(self, spot))
                return

    def watch_rejected(self) -> None:
        """Lay out again with more or fewer of the rejected drafts."""
        self._lay_out()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Follow the end from the moment the reader comes near it, until they leave it. Near is enough on the way down,
        for the end may move on meanwhile."""
        super().watch_scroll_y(old_value, new_value)
        if self._changing:
            return
        near = _NEAR if new_value > old_value else 0
        following = new_value >= self.max_scroll_y - near
        if following != self.following:
            self.following = following
            self.post_message(self.Followed())
        if self._whole is not None and not following and new_value <= 0 < self._layout.begin:
            self._show_part(self._layout.begin)
        elif following and self._layout.end < len(self._transcript.spans):
            self.update()

    def on_resize(self) -> None:
        """Wrap for the new width, with the same words in view."""
        if self.scrollable_content_region.width != self._layout.width:
            self._lay_out()

    def notify_style_update(self) -> None:
        """Forget what was drawn in another style."""
        super().notify_style_update()
        self._styles.clear()
        self._strips.clear()

    def render_line(self, y: int) -> Strip:
        """One row in view."""
        row = y + self.scroll_offset.y
        width = self.scrollable_content_region.width
        if row >= len(self._layout.rows):
            return Strip.blank(width, self.rich_style)
        strip = self._strips.get(row)
        if strip is None:
            self._strips[row] = strip = self._draw(self._layout.rows[row], width)
        return strip

    def _lay_out(self, begun: Layout | None = None) -> None:
        """Lay out anew, or as far as `begun` has not been, with the same words in view."""
        top = self.first_place.span
        self._whole = begun or self._new_layout()
        self._whole.cut(len(self._transcript.spans))
        if len(self._transcript.spans) - self._whole.end <= _AT_ONCE:
            self._whole.extend(self._transcript.spans)
            self._layout, self._whole = self._whole, None
        else:
            self._layout = self._part(None if self.following else top)
            self._turns = self._turns or self.set_interval(1 / _TURNS_PER_S, self._go_on)
        self._changed(top)

    def _new_layout(self, begin: int = 0) -> Layout:
        marks = MARKS if self.app.no_color else None
        return Layout(self.scrollable_content_region.width, HIDDEN[self.rejected], marks, begin)

    def _part(self, around: int | None) -> Layout:
        """The part of the transcript around a span, None for its end, from a line's beginning on."""
        spans = self._transcript.spans
        end = len(spans) if around is None else min(len(spans), around + _AT_ONCE // 2)
        latest = max(0, end - _AT_ONCE)
        lines = (i for i in range(latest, max(0, latest - _LINE_WITHIN), -1) if spans[i - 1].text.endswith("\n"))
        part = self._new_layout(next(lines, latest))
        part.extend(spans, end)
        return part

    def _reach(self, span: int) -> None:
        """Have the part around a span laid out, if it is not."""
        if self._whole is not None and not self._layout.begin <= span < self._layout.end:
            self._show_part(span)

    def _show_part(self, around: int) -> None:
        self._layout = self._part(around)
        self._changed(around)

    def _go_on(self) -> None:
        """Lay out some more of the whole, and show it when it is complete."""
        spans, whole = self._transcript.spans, self._whole
        if whole is not None:
            whole.cut(len(spans))
            whole.extend(spans, whole.end + _PER_TURN)
            if whole.end < len(spans):
                return
            top = self.first_place.span
            self._layout, self._whole = whole, None
            self._changed(top)
        if self._turns is not None:
            self._turns.stop()
            self._turns = None

    def _changed(self, top: int) -> None:
        """Show another layout: its end, or the row at which the span `top` begins."""
        self._strips.clear()
        self._changing = True  # what the new size makes of the place in view is nobody's wish
        self.virtual_size = Size(self._layout.width, len(self._layout.rows))
        y = len(self._layout.rows) if self.following else self._layout.row_at(top)
        self.scroll_to(y=y, animate=False, force=True, immediate=True)
        self._changing = False
        self.refresh()

    def _draw(self, row: Row, width: int) -> Strip:
        segments: list[Segment] = []
        style: Style | None = None
        text = ""
        for fragment in row:
            found = (
                self._search.within(Place(fragment.span, fragment.start), len(fragment.text)) if self._search else []
            )
            own = self._style_of(fragment)
            if own is not style or found:
                if style is not None:
                    segments.append(Segment(text, style))
                style, text = own, ""
            if found:
                segments += self._marked(fragment, found)
                style = None
            else:
                text += fragment.text
        if style is not None:
            segments.append(Segment(text, style))
        used = sum(fragment.width for fragment in row)
        return Strip(segments, used).adjust_cell_length(width, self.rich_style)

    def _marked(self, fragment: Fragment, found: list[tuple[int, int, int]]) -> Iterator[Segment]:
        """A fragment with what was searched standing out."""
        style = self._style_of(fragment)
        end = 0
        for begin, behind, match in found:
            yield Segment(fragment.text[end:begin], style)
            yield Segment(
                fragment.text[begin:behind], style + self._style(_CURRENT if match == self._match else _MATCH)
            )
            end = behind
        yield Segment(fragment.text[end:], style)

    def _style_of(self, fragment: Fragment) -> Style:
        """By kind; within the batches that are looked at on a ground of their own, with bars that stand out."""
        if fragment.span not in self._looked_at:
            return self._style(fragment.kind)
        if fragment.span == self._chosen:
            return self._style(_CHOSEN)
        ground = self._style(_BATCH).background_style
        return self._style(fragment.kind) + (Style(reverse=True) if fragment.kind is Kind.BAR else ground)

    def _style(self, kind: str) -> Style:
        if kind not in self._styles:
            self._styles[kind] = self.get_component_rich_style(f"transcript--{kind}")
        return self._styles[kind]
