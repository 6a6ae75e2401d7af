"""The tour on the screen: pages of real steps, out of the way as soon as something is written."""

from typing import ClassVar

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from peagle_cli import locations
from peagle_cli.tui.lesson import Lesson
from peagle_cli.tui.tour import LINES, Page, pages
from peagle_cli.tui.widgets.panel import Panel, Pieces

_SEEN = "tour-seen"


class TourPage(Panel):
    """One page."""

    def __init__(self, lesson: Lesson) -> None:
        super().__init__()
        self._lesson = lesson
        self._number = 0

    def pages(self) -> list[Page]:
        """All pages, as wide as this is."""
        return pages(self._lesson, max(1, self.size.width))

    def show_page(self, number: int) -> None:
        """Show another."""
        self._number = number
        self.redraw()

    def draw(self) -> list[Pieces]:
        """Draw it."""
        return [[self.ink(text, ink) for text, ink in line] for line in self.pages()[self._number].lines]


class TourScreen(ModalScreen[str]):
    """Ends with what was written meanwhile, which is meant for the prompt; empty after Escape."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,enter,space,pagedown", "turn(1)", "next", id="tour.next"),
        Binding("left,backspace,pageup", "turn(-1)", "back", id="tour.back"),
        Binding("escape,f1,ctrl+c", "close", "close", priority=True, id="tour.close"),
        Binding("ctrl+d", "leave", "Leave", show=False, id="tour.leave"),
    ]

    def __init__(self, lesson: Lesson) -> None:
        super().__init__()
        self._page = TourPage(lesson)
        self._number = 0
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
        self._number = max(0, self._number + by)
        if self._number < len(self._page.pages()):
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
        every = self._page.pages()
        frame = self.query_one("#tour")
        frame.border_title = every[self._number].title
        frame.border_subtitle = "esc closes, and so does writing"
        self._page.show_page(self._number)
        dots = "".join("●" if number == self._number else "○" for number in range(len(every)))
        last = self._number == len(every) - 1
        hint = "⏎ to the prompt · /tour shows this again" if last else "⏎ next · ← back"
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
