"""Where the user writes: a text area that sends, recalls, and completes commands."""

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.events import Key
from textual.message import Message
from textual.widgets import TextArea

from peagle_cli.tui.commands import completion


class Prompt(TextArea):
    """Enter sends, Ctrl+J (and Shift+Enter, where the terminal tells it apart) begins a new line, ↑ recalls."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "send", "send", key_display="⏎", tooltip="Send", id="prompt.send"),
        Binding("ctrl+j,shift+enter", "newline", "newline", tooltip="New line", id="prompt.newline"),
        Binding("up", "recall(-1)", "Prompt before", show=False, id="prompt.previous"),
        Binding("down", "recall(1)", "Prompt after", show=False, id="prompt.next"),
        Binding("tab", "complete", "Complete; go to the transcript", show=False, id="prompt.complete"),
        Binding("ctrl+d", "end", "Leave, on an empty prompt", show=False, id="prompt.end"),
        Binding("pageup", "screen.page(-1)", show=False, id="prompt.page-up"),
        Binding("pagedown", "screen.page(1)", show=False, id="prompt.page-down"),
    ]

    class Sent(Message):
        """The user wants this to be asked, or this command to be carried out."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(self, id: str | None = None) -> None:
        super().__init__(
            id=id,
            soft_wrap=True,
            compact=True,
            highlight_cursor_line=False,
            placeholder="Ask something, or / for commands",
        )
        self.cursor_blink = False  # nothing moves while nothing happens
        self._history: list[str] = []
        self._recalled = 0  # how many steps back from the line being written
        self._draft = ""

    def remember(self, text: str) -> None:
        """Let ↑ find this text first."""
        if not self._history or self._history[-1] != text:
            self._history.append(text)

    def replace_text(self, text: str) -> None:
        """Put `text` in place of what is written, the cursor at its end."""
        self.text = text
        self.move_cursor(self.document.end)

    def update_suggestion(self) -> None:
        """Propose the rest of a command."""
        at_end = self.cursor_location == self.document.end
        self.suggestion = completion(self.text) if at_end else ""

    async def _on_key(self, event: Key) -> None:
        """Obey this widget's own bindings at once: by the usual way they would overtake, or be overtaken by, letters
        typed quickly before or after them."""
        active = self.screen.active_bindings.get(event.key)
        if active is not None and active.node is self:
            event.stop()
            event.prevent_default()
            await self.run_action(active.binding.action)

    def action_send(self) -> None:
        """Hand over what is written."""
        if text := self.text.strip():
            self._recalled = 0
            self.text = ""
            self.post_message(self.Sent(text))

    def action_newline(self) -> None:
        """Begin a new line."""
        self.insert("\n")

    def action_complete(self) -> None:
        """Take the proposed completion; without one, leave for the transcript."""
        if self.suggestion:
            self.insert(self.suggestion)
        else:
            self.screen.focus_next()

    async def action_end(self) -> None:
        """On an empty prompt, leave the chat; otherwise delete to the right."""
        if self.text:
            self.action_delete_right()
        else:
            await self.run_action("screen.leave")

    def action_recall(self, step: int) -> None:
        """From the first or the last line, go to the prompt before or after; elsewhere move the cursor."""
        row, last = self.cursor_location[0], self.document.line_count - 1
        target = self._recalled - step
        if (row > 0 if step < 0 else row < last) or not 0 <= target <= len(self._history):
            (self.action_cursor_up if step < 0 else self.action_cursor_down)()
            return
        if self._recalled == 0:
            self._draft = self.text
        self._recalled = target
        self.replace_text(self._history[-target] if target else self._draft)
