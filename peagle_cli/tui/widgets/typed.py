"""What is written where nothing can be written goes to the prompt."""

from textual import events
from textual.message import Message
from textual.widget import Widget


class Typed(Message):
    """The reader writes here what is meant for the prompt."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


class PassesOnTyping(Widget):
    """Passes on letters that mean nothing here, and what is pasted."""

    def on_key(self, event: events.Key) -> None:
        """Pass on a letter that no key is bound to."""
        if event.is_printable and event.character and event.key not in self.screen.active_bindings:
            event.stop()
            self.post_message(Typed(event.character))

    def on_paste(self, event: events.Paste) -> None:
        """Pass on what is pasted."""
        event.stop()
        self.post_message(Typed(event.text))
