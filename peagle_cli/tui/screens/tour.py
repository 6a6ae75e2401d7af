"""The tour on the screen: pages of real steps, out of the way as soon as something is written."""

from functools import partial
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from peagle_cli import locations
from peagle_cli.tui.keys import key_of
from peagle_cli.tui.lesson import Lesson
from peagle_cli.tui.tour import LINES, Page, pages
from peagle_cli.tui.widgets.panel import Panel, Pieces

_SEEN = "tour-seen"


class TourPage(Panel):
    """One page; `number` says which, counted from 0."""

    def __init__(self, lesson: Lesson) -> None:
        super().__init__()
        self.number = 0
        self._lesson = lesson

    def pages(self) -> list[Page]:
        """All pages, as wide as this is."""
        return pages(self._lesson, max(1, self.size.width), partial(key_of, self.app))

    def turn(self, by: int) -> bool:
        """Show a page further on or back; returns whether there is one further on."""
        number = max(0, self.number + by)
        if number >= len(self.pages()):
            return False
        self.number = number
        self.redraw()
        return True

    def draw(self) -> list[Pieces]:
        """Draw it."""
        return [[self.ink(text, ink) for text, ink in line] for line in self.pages()[self.number].lines]


class TourScreen(ModalScreen[str]):
    """Ends with what was written meanwhile, which is meant for the prompt; empty after Escape."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,right,space,pagedown", "turn(1)", "next", id="tour.next"),
        Binding("left,backspace,pageup", "turn(-1)", "back", id="tour.back"),
        Binding("escape,f1,ctrl+c", "close", "close", priority=True, id="tour.close"),
        Binding("ctrl+d", "leave", "Leave", show=False, id="tour.leave"),
    ]

    def __init__(self, lesson: Lesson) -> None:
        super().__init__()
        self._page = TourPage(lesson)
        self._written: str | None = None  # once it is ending

    def compose(self) -> ComposeResult:
        """A page, and where it stands."""
        with Vertical(id="tour"):
            self._page.styles.height = LINES
            yield self._page
            yield Static(id="turn")

    def on_mount(self) -> None:
        """Begin at the beginning, and remember that there was a tour."""
        remember()
        self._show()

    def on_key(self, event: events.Key) -> None:
        """Whoever writes wants to ask something."""
        if event.is_printable and event.character and event.key not in self.active_bindings:
            event.stop()
            self._end(event.character)

    def on_paste(self, event: events.Paste) -> None:
        """As with what is written."""
        event.stop()
        self._end(event.text)

    def action_turn(self, by: int) -> None:
        """Turn the page; behind the last one the tour is over."""
        if self._page.turn(by):
            self._show()
        else:
            self._end()

    def action_close(self) -> None:
        """End it."""
        self._end()

    def action_leave(self) -> None:
        """End the chat, as the same key does there."""
        self.app.exit(0)

    def _end(self, written: str = "") -> None:
        """Leave once what is written at this moment has arrived: keys come faster than screens change."""
        if self._written is None:
            self._written = written
            self.call_later(self._leave)
        else:
            self._written += written

    def _leave(self) -> None:
        self.dismiss(self._written)

    def _show(self) -> None:
        every, here = self._page.pages(), self._page.number
        following, back, close = (key_of(self.app, f"tour.{name}") for name in ("next", "back", "close"))
        frame = self.query_one("#tour")
        frame.border_title = every[here].title
        frame.border_subtitle = f"{close} closes, and so does writing"
        dots = "".join("●" if number == here else "○" for number in range(len(every)))
        last = here == len(every) - 1
        hint = f"{following} to the prompt · /tour shows this again" if last else f"{following} next · {back} back"
        self.query_one("#turn", Static).update(Text.assemble(f"{dots}  ", hint))


def is_new() -> bool:
    """Whether the tour has never been shown to this user."""
    return not (locations.data() / _SEEN).exists()


def remember() -> None:
    """The tour has been shown."""
    try:
        locations.data().mkdir(mode=0o700, parents=True, exist_ok=True)
        (locations.data() / _SEEN).touch()
    except OSError:
        return  # it is shown again, which harms nobody
