"""The timeline of a reply or a conversation: a column per step, as high as drafts were accepted."""

from typing import ClassVar, NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.color import Color
from textual.events import Leave, MouseDown, MouseMove, MouseUp
from textual.message import Message
from textual.strip import Strip

from peagle_cli.trace.course import Course, Stretch
from peagle_cli.trace.events import METHOD_NAMES, Method
from peagle_cli.trace.rounds import Setting, name_of
from peagle_cli.tui.keys import key_of
from peagle_cli.tui.widgets.panel import Panel, Pieces
from peagle_cli.tui.widgets.typed import PassesOnTyping
from peagle_cli.wording import counted

METHOD_INKS: dict[Method, str] = {"none": "label", "eagle3": "target", "peagle": "draft", "other": "correction"}
"""The named style that stands for a method."""

_EIGHTHS = " ▁▂▃▄▅▆▇█"
_NOTHING_DRAFTED = "·"
_REPLY, _CHANGE, _HERE = "┃", "╷", "▲"
_PALEST = 0.5  # of a method's colour, at depth 1
_LEAP = 10  # columns
_WIDE = 72  # cells, from which on there is room for a legend in words
_LEGEND, _SHORT_LEGEND = 14, 7


class _Window(NamedTuple):
    """What is in view: columns of `per` batches, from the batch `begin` on to before `end`."""

    begin: int
    end: int
    per: int


class CourseStrip(Panel, PassesOnTyping, can_focus=True):
    """Columns, below them a line with the marks of replies and changes; while someone moves along it, a line with
    what the step under the cursor came to, in place of the marks where there are fewer than four lines.

    All of the course is condensed into the width there is, or, after `z`, shown step by step around the cursor.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "move(-1)", "A step back", show=False, id="course.back"),
        Binding("right", "move(1)", "A step on", show=False, id="course.on"),
        Binding("shift+left", f"move(-{_LEAP})", "Some steps back", show=False, id="course.leap-back"),
        Binding("shift+right", f"move({_LEAP})", "Some steps on", show=False, id="course.leap"),
        Binding("ctrl+left", "move_to_mark(-1)", "To the change before", show=False, id="course.mark-back"),
        Binding("ctrl+right", "move_to_mark(1)", "To the next change", show=False, id="course.mark"),
        Binding("home", "move_to(0)", "To the first step", show=False, id="course.first"),
        Binding("end", "move_to(-1)", "To the last step", show=False, id="course.last"),
        Binding("z", "zoom", "zoom", tooltip="All steps in view, or a column for each", id="course.zoom"),
    ]

    class Moved(Message):
        """The cursor was moved to this batch of the course; `batches` are those that its column stands for."""

        def __init__(self, strip: "CourseStrip", batch: int, batches: range) -> None:
            super().__init__()
            self.strip = strip
            self.batch = batch
            self.batches = batches

        @property
        def control(self) -> "CourseStrip":
            """The strip it was moved on."""
            return self.strip

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self._course = Course()
        self._happened: int | None = None
        self._cursor: int | None = None
        self._pointed: int | None = None
        self._whole = True
        self._begin = 0  # of what is in view, where that is not the whole
        self._drawn: tuple[object, ...] = ()

    @property
    def cursor(self) -> int | None:
        """The batch that is looked at; None where nobody has moved along."""
        return self._cursor

    def show_course(self, course: Course, happened: int | None = None) -> None:
        """Show this course as of now. Of a course that is known to its end, `happened` batches lie behind."""
        if course is not self._course:
            self._course, self._cursor, self._pointed = course, None, None
        self._happened = happened
        if happened is not None:
            self._cursor = happened - 1 if happened else None
        if (now := (course, len(course), self._cursor)) != self._drawn:
            self._drawn = now
            self.redraw()

    def look_at(self, batch: int | None) -> None:
        """Put the cursor on a batch, or take it away."""
        self._cursor = batch
        self.redraw()

    # What the user does

    def action_move(self, columns: int) -> None:
        """Move the cursor by so many columns."""
        if self._cursor is None:
            self._move_to(len(self._course) - 1 if columns < 0 else 0)
        else:
            self._move_to(self._cursor + columns * self._window().per)

    def action_move_to(self, batch: int) -> None:
        """Move the cursor to a batch; negative ones count from the end."""
        self._move_to(batch if batch >= 0 else len(self._course) + batch)

    def action_move_to_mark(self, direction: int) -> None:
        """Move the cursor to where the next, or the last, reply or change begins."""
        here = self._cursor if self._cursor is not None else len(self._course)
        begins = [segment.begin for segment in self._course.segments]
        beyond = [b for b in begins if b > here] if direction > 0 else [b for b in reversed(begins) if b < here]
        if beyond:
            self._move_to(beyond[0])

    def action_zoom(self) -> None:
        """All of the course in view, or a column for each step."""
        self._whole = not self._whole
        here = self._cursor if self._cursor is not None else len(self._course)
        self._begin = here - self._room // 2
        self.redraw()

    def on_mouse_down(self, event: MouseDown) -> None:
        """Go to the step that was pressed on, and follow the mouse from there."""
        self.capture_mouse()
        self._go_to_column(event.get_content_offset_capture(self).x)

    def on_mouse_up(self, event: MouseUp) -> None:
        """Follow the mouse no longer."""
        self.release_mouse()

    def on_mouse_move(self, event: MouseMove) -> None:
        """Tell about the step that is pointed at; while the button is down, go there."""
        column = event.get_content_offset_capture(self).x
        if event.button:
            self._go_to_column(column)
        elif (pointed := self._batch_in(column)) != self._pointed:
            self._pointed = pointed
            self.redraw()

    def on_leave(self, event: Leave) -> None:
        """Tell about the cursor's step again."""
        if self._pointed is not None:
            self._pointed = None
            self.redraw()

    def on_focus(self) -> None:
        """Say so."""
        self.redraw()

    def on_blur(self) -> None:
        """Say so."""
        self.redraw()

    def _go_to_column(self, column: int) -> None:
        batch = self._batch_in(column)
        if batch is not None:
            self._move_to(batch)

    def _move_to(self, batch: int) -> None:
        if not len(self._course):
            return
        batch = min(max(batch, 0), len(self._course) - 1)
        if batch != self._cursor:
            self.look_at(batch)
            self.post_message(self.Moved(self, batch, self._column_of(self._window(), batch)))

    # What is shown

    def draw(self) -> list[Pieces]:
        """Draw it."""
        if not len(self._course):
            return []
        window, height = self._window(), self.size.height
        told = self._told()
        lines = 0 if height == 1 else 1 if height < 4 else 2
        drawn = self._columns(window, height - lines)
        if lines == 2 or (lines == 1 and told is None):
            drawn.append(self._marks(window))
        if lines == 2 or (lines == 1 and told is not None):
            drawn.append(self._description(window, told))
        return drawn

    @property
    def _room(self) -> int:
        """Cells for columns: beside them stands what a column is."""
        return max(1, self.size.width - (_LEGEND if self.size.width >= _WIDE else _SHORT_LEGEND))

    def _told(self) -> int | None:
        """The batch that is described: the one pointed at, or, to someone who moves along, the cursor's."""
        return self._pointed if self._pointed is not None else self._cursor if self.has_focus else None

    def _window(self) -> _Window:
        count, width = len(self._course), self._room
        if self._whole:
            return _Window(0, count, max(1, -(-count // width)))
        here = self._cursor if self._cursor is not None else count - 1
        self._begin = max(0, min(max(self._begin, here - width + 1), here, count - width))
        return _Window(self._begin, min(count, self._begin + width), 1)

    def _stretches(self, window: _Window) -> list[Stretch]:
        begins = range(window.begin, window.end, window.per)
        return [self._course.stretch(begin, min(begin + window.per, window.end)) for begin in begins]

    def _batch_in(self, column: int) -> int | None:
        """The batch that a column stands for: of several, the last; of a column beyond the end, the last of all."""
        window = self._window()
        if window.begin == window.end:
            return None
        return min(window.begin + (max(0, column) + 1) * window.per - 1, window.end - 1)

    def _column_of(self, window: _Window, batch: int) -> range:
        """The batches of the column that a batch is in."""
        begin = window.begin + (batch - window.begin) // window.per * window.per
        return range(begin, min(begin + window.per, len(self._course)))

    def _cursor_column(self, window: _Window) -> int | None:
        if self._cursor is None or not window.begin <= self._cursor < window.end:
            return None
        return (self._cursor - window.begin) // window.per

    def _columns(self, window: _Window, height: int) -> list[Pieces]:
        stretches = self._stretches(window)
        styles = [self._style(stretch) for stretch in stretches]
        top = max(1, self._course.deepest)
        heights = [
            None if s.mean_accepted is None else 1 + round(s.mean_accepted / top * (height * 8 - 1)) for s in stretches
        ]
        here = self._cursor_column(window) if self._told() is not None and height > self.size.height - 2 else None
        lines: list[Pieces] = []
        for level in reversed(range(height)):
            columns = [Segment(_part(high, level), style) for high, style in zip(heights, styles, strict=True)]
            if level == 0 and here is not None:
                columns[here] = Segment(columns[here].text, styles[here] + Style(reverse=True))
            columns.append(self.ink(" " * (self._room - len(columns)), "off"))
            lines.append([*columns, self.ink(self._legend(window, level, height), "label")])
        return lines

    def _legend(self, window: _Window, level: int, height: int) -> str:
        """What the height of a column means, where there is a line for it, and how many steps a column is."""
        wide, deepest = self.size.width >= _WIDE, self._course.deepest
        if level == 0:
            return f" ▇ = {counted(window.per, 'step')}" if wide else f" ▇={window.per}"
        if level == height - 1 and deepest:
            return f" {deepest} accepted" if wide else f" {deepest}"
        return ""

    def _style(self, stretch: Stretch) -> Style:
        """By the setting of its last step, paler the shallower; what has yet to happen is off."""
        if self._happened is not None and stretch.begin >= self._happened:
            return self.get_component_rich_style("panel--off")
        return self._shade(self._course.segment_at(stretch.end - 1).setting)

    def _shade(self, setting: Setting) -> Style:
        method, depth = setting
        name = f"panel--{METHOD_INKS[method]}"
        style = self.get_component_rich_style(name)
        ink = self.get_component_styles(name).color
        if ink.ansi is not None or method == "none" or self._course.deepest < 2:
            return style
        share = _PALEST + (1 - _PALEST) * (depth - 1) / (self._course.deepest - 1)
        background: Color = self.background_colors[1]
        return style + Style(color=background.blend(ink, share).rich_color)

    def _marks(self, window: _Window) -> Pieces:
        """Where replies begin and settings change, each with what it changed to where there is room; and the cursor."""
        starts: list[tuple[int, str, Setting]] = []
        for column, stretch in enumerate(self._stretches(window)):
            segment = self._course.segment_at(stretch.end - 1)
            if segment.begin >= stretch.begin:
                tick = _REPLY if self._course.begins_reply(stretch.begin, stretch.end) else _CHANGE
                starts.append((column, tick, segment.setting))
        line: Pieces = [self.ink(" " * (starts[0][0] if starts else 0), "label")]
        before: Setting | None = None
        for i, (column, tick, setting) in enumerate(starts):
            room = (starts[i + 1][0] if i + 1 < len(starts) else self._room) - column - 1
            label = next((label for label in _labels(setting, before) if len(label) < room), "")
            line += [self.ink(tick, "correction"), self.ink(label.ljust(room), "label")]
            before = setting
        return self._with_cursor(line, window)

    def _with_cursor(self, line: Pieces, window: _Window) -> Pieces:
        """The line of marks with the cursor, and with arrows where steps lie beyond what is in view."""
        room = self._room
        strip = Strip(line).adjust_cell_length(room, self.rich_style)
        signs = [(0, "‹", "value")] if window.begin else []
        signs += [(room - 1, "›", "value")] if window.end < len(self._course) else []
        here = self._cursor_column(window)
        signs += [(here, _HERE, "hero")] if here is not None else []
        for column, sign, ink in signs:
            before, _, behind = strip.divide([column, column + 1, room])
            strip = Strip([*before, self.ink(sign, ink), *behind])
        return list(strip)

    def _description(self, window: _Window, batch: int | None) -> Pieces:
        batch = self._cursor if batch is None else batch
        if batch is None or batch >= len(self._course):
            back, on = (key_of(self.app, name) for name in ("course.back", "course.on"))
            return [self.ink(f"{back} {on} go along the steps" if self.has_focus else "", "label")]
        column = self._column_of(window, batch)
        return describe(self, self._course, self._course.stretch(column.start, column.stop))


def describe(panel: Panel, course: Course, stretch: Stretch) -> Pieces:
    """A stretch in one line, at most some 60 cells."""
    setting = course.segment_at(stretch.end - 1).setting
    single = stretch.end - stretch.begin == 1
    steps, reply = _place(course, stretch)
    return [
        panel.ink(f"{steps} ", "value"),
        panel.ink(f"{reply}  " if reply else " ", "label"),
        panel.ink(f"{name_of(setting)}  ", METHOD_INKS[setting[0]]),
        *_outcome(panel, stretch, single),
    ]


def _place(course: Course, stretch: Stretch) -> tuple[str, str]:
    """Which steps these are, numbered in their reply as everywhere, and which reply that is, where there are several.
    Of a stretch over several replies only the number of steps."""
    first, last = course.reply_of(stretch.begin), course.reply_of(stretch.end - 1)
    if first != last:
        return f"{stretch.end - stretch.begin} steps", f"in replies {first + 1}–{last + 1}"
    begin, end = course.step_of(stretch.begin), course.step_of(stretch.end - 1)
    steps = f"step {begin}" if begin == end else f"steps {begin}–{end}"
    return steps, f"in reply {first + 1}" if course.replies > 1 else ""


def _labels(setting: Setting, before: Setting | None) -> tuple[str, ...]:
    """What a setting changed to, the longest way of saying it first."""
    method, depth = setting
    if setting == before:
        return ()
    if before is not None and before[0] == method:
        return (str(depth),)
    return name_of(setting), f"{METHOD_NAMES[method][0]}{depth}"


def _outcome(panel: Panel, stretch: Stretch, single: bool) -> Pieces:
    pieces = []
    if not stretch.drafts:
        pieces.append(panel.ink("nothing drafted", "label"))
    elif single:
        pieces.append(panel.ink(f"{stretch.accepted_tokens} of {stretch.draft_tokens} accepted", "value"))
    else:
        pieces.append(panel.ink(f"{stretch.mean_acceptance_length:.2f} tokens per step", "value"))
    if single and stretch.seconds:
        pieces.append(panel.ink(f"  {stretch.seconds * 1000:.1f} ms", "label"))
    elif stretch.tokens_per_second is not None:
        pieces.append(panel.ink(f"  {stretch.tokens_per_second:.0f} tokens/s", "label"))
    return pieces


def _part(high: int | None, level: int) -> str:
    """A column's character `level` lines above the lowest; `high` is its height in eighths of a line."""
    if high is None:
        return _NOTHING_DRAFTED if level == 0 else " "
    return _EIGHTHS[min(8, max(0, high - level * 8))]
