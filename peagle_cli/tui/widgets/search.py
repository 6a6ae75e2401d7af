"""The line in which the transcript is searched."""

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input, Static


class SearchLine(Horizontal):
    """Takes the place of the status line. `pattern` is what is searched."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "accept", "to the match", key_display="⏎", priority=True, id="search.accept"),
        Binding("down", "screen.next_match(1)", "next", key_display="↓", id="search.next"),
        Binding("up", "screen.next_match(-1)", "previous", key_display="↑", id="search.previous"),
        Binding("escape,ctrl+c", "give_up", "back", key_display="esc", priority=True, id="search.close"),
    ]

    class Changed(Message):
        """Another pattern was written; `pattern` is it."""

        def __init__(self, pattern: str) -> None:
            super().__init__()
            self.pattern = pattern

    class Ended(Message):
        """The search is over: stay at the match, or go back to where the reader was."""

        def __init__(self, stay: bool) -> None:
            super().__init__()
            self.stay = stay

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self.display = False

    def compose(self) -> ComposeResult:
        """A label, the pattern, the count."""
        yield Static("search ", classes="label")
        yield Input(compact=True, placeholder="words of the conversation", select_on_focus=True)
        yield Static(id="matches", markup=False)

    def begin(self) -> None:
        """Let a pattern be written."""
        self.display = True
        self.query_one(Input).focus()

    def count(self, text: str) -> None:
        """Say which match is in view, of how many."""
        self.query_one("#matches", Static).update(text)

    @on(Input.Changed)
    def _written(self, message: Input.Changed) -> None:
        message.stop()
        self.post_message(self.Changed(message.value))

    def action_accept(self) -> None:
        """Stay at the match."""
        self.post_message(self.Ended(stay=True))

    def action_give_up(self) -> None:
        """Go back to where the reader was."""
        self.post_message(self.Ended(stay=False))
