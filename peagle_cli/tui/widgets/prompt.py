"""Where the user writes: a text area that sends, recalls, and completes commands."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import TextArea

from peagle_cli.text import printable
from peagle_cli.tui.completion import Proposal, proposals
from peagle_cli.tui.history import PromptHistory


class Prompt(TextArea):
    """Enter sends, Ctrl+J (and Shift+Enter, where the terminal tells it apart) begins a new line.

    ↑ and ↓ go through the history, through those prompts alone that begin with what is written, if something is. While
    a command is being typed they choose among what it can become; `known` has the arguments that only the screen knows.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "send", "send", key_display="⏎", tooltip="Send", id="prompt.send"),
        Binding("ctrl+j,shift+enter", "newline", "newline", tooltip="New line", id="prompt.newline"),
        Binding("up", "recall(-1)", "Prompt before that begins like this", show=False, id="prompt.previous"),
        Binding("down", "recall(1)", "Prompt after that begins like this", show=False, id="prompt.next"),
        Binding("tab", "complete", "Complete; go to the transcript", show=False, id="prompt.complete"),
        Binding("ctrl+g", "screen.edit_prompt", "Write in your editor", show=False, id="prompt.edit"),
        Binding("escape", "close_completions", show=False, id="prompt.close-completions"),
        Binding("ctrl+d", "end", "Leave, on an empty prompt", show=False, id="prompt.end"),
        Binding("pageup", "screen.page(-1)", show=False, id="prompt.page-up"),
        Binding("pagedown", "screen.page(1)", show=False, id="prompt.page-down"),
    ]

    class Sent(Message):
        """The user wants this to be asked, or this command to be carried out."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Completing(Message):
        """What is written can become one of these, of which one is chosen; none when there is nothing to complete."""

        def __init__(self, proposals: Sequence[Proposal], chosen: int) -> None:
            super().__init__()
            self.proposals = proposals
            self.chosen = chosen

    def __init__(self, history: PromptHistory | None = None, id: str | None = None) -> None:
        super().__init__(
            id=id,
            soft_wrap=True,
            compact=True,
            highlight_cursor_line=False,
            placeholder="Ask something, or / for commands",
        )
        self.cursor_blink = False  # nothing moves while nothing happens
        self.known: Mapping[str, Sequence[str]] = {}
        self._history = PromptHistory() if history is None else history
        self._recalled: int | None = None  # the place in the history; None for the line being written
        self._draft = ""
        self._proposals: list[Proposal] = []
        self._chosen = 0

    def remember(self, text: str) -> None:
        """Let ↑ find this text first."""
        self._history.add(text)

    def replace_text(self, text: str) -> None:
        """Put `text` in place of what is written, the cursor at its end. It can be undone."""
        self.replace(text, self.document.start, self.document.end)
        self.move_cursor(self.document.end)

    def take(self, proposal: Proposal) -> None:
        """Let what is written become this."""
        self.replace_text(proposal.line)

    def update_suggestion(self) -> None:
        """Propose what a command can become: the chosen one as faint text too, where it goes on from what is written.

        A prompt that was recalled stands as it is, so that ↑ goes on recalling.
        """
        at_end = self.cursor_location == self.document.end
        recalled = self._recalled is not None and self.text == self._history[self._recalled]
        self._offer(proposals(self.text, self.known) if at_end and not recalled else [], 0)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Escape closes the list where there is one, and is the screen's otherwise."""
        return bool(self._proposals) if action == "close_completions" else True

    async def _on_key(self, event: events.Key) -> None:
        """Obey this widget's own bindings at once: by the usual way they would overtake, or be overtaken by, letters
        typed quickly before or after them."""
        active = self.screen.active_bindings.get(event.key)
        if active is not None and active.node is self:
            event.stop()
            event.prevent_default()
            await self.run_action(active.binding.action)

    async def _on_paste(self, event: events.Paste) -> None:
        """Show control characters that are pasted as signs, which do nothing to the terminal."""
        event.prevent_default()
        await super()._on_paste(events.Paste(printable(event.text.replace("\r\n", "\n").replace("\r", "\n"))))

    def action_send(self) -> None:
        """Hand over what is written; or complete it first, where it is not yet a command."""
        if self._proposals and self.text.strip() not in (proposal.line for proposal in self._proposals):
            chosen = self._proposals[self._chosen]
            self.take(chosen)
            if not chosen.whole:
                return
        if text := self.text.strip():
            self._recalled = None
            self.text = ""
            self.post_message(self.Sent(text))

    def action_newline(self) -> None:
        """Begin a new line."""
        self.insert("\n")

    def action_complete(self) -> None:
        """Take the chosen completion; without one, leave for the transcript."""
        if self._proposals:
            self.take(self._proposals[self._chosen])
        else:
            self.screen.focus_next()

    def action_close_completions(self) -> None:
        """Propose nothing for what is written now."""
        self._offer([], 0)

    async def action_end(self) -> None:
        """On an empty prompt, leave the chat; otherwise delete to the right."""
        if self.text:
            self.action_delete_right()
        else:
            await self.run_action("screen.leave")

    def action_recall(self, step: int) -> None:
        """Choose another completion; or, from the first or the last line, go to the prompt before or after that begins
        with what was written; elsewhere move the cursor."""
        if self._proposals:
            self._offer(self._proposals, (self._chosen + step) % len(self._proposals))
            return
        row, last = self.cursor_location[0], self.document.line_count - 1
        if row > 0 if step < 0 else row < last:
            (self.action_cursor_up if step < 0 else self.action_cursor_down)()
            return
        if self._recalled is None or self.text != self._history[self._recalled]:
            self._recalled, self._draft = None, self.text
        here = len(self._history) if self._recalled is None else self._recalled
        found = (self._history.before if step < 0 else self._history.after)(here, self._draft)
        if found is not None:
            self._recalled = found
            self.replace_text(self._history[found])
        elif step > 0 and self._recalled is not None:
            self._recalled = None
            self.replace_text(self._draft)
        else:
            (self.action_cursor_up if step < 0 else self.action_cursor_down)()

    def _offer(self, proposals: list[Proposal], chosen: int) -> None:
        if (proposals, chosen) == (self._proposals, self._chosen):
            return
        self._proposals, self._chosen = proposals, chosen
        self.suggestion = proposals[chosen].line.removeprefix(self.text) if proposals else ""
        self.post_message(self.Completing(proposals, chosen))
