"""An answer as it is meant to be read: Markdown with highlighted code and tables, also while it is being written."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Markdown, Static

from peagle_cli.text import one_line, printable
from peagle_cli.tui.markdown import parser
from peagle_cli.tui.widgets.typed import PassesOnTyping


class AnswerView(PassesOnTyping, VerticalScroll, can_focus=True):
    """One answer at a time, under the prompt it answers.

    A growing answer is followed at its end, until the reader scrolls up. Its new words are added when those before are
    on the screen: however fast they come, the screen stays quick.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("v", "screen.view", "tokens", tooltip="Back to the tokens", id="answer.view"),
        Binding("left", "screen.other_answer(-1)", "answer before", key_display="←", id="answer.previous"),
        Binding("right", "screen.other_answer(1)", "answer after", key_display="→", id="answer.next"),
        Binding("y", "screen.copy('answer')", "copy", tooltip="Copy the answer", id="answer.copy"),
        Binding("c", "screen.copy('code')", "copy code", tooltip="Copy a block of code", id="answer.copy-code"),
        Binding("enter", "screen.write", "write", key_display="⏎", tooltip="Go to the prompt", id="answer.write"),
    ]

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self.display = False
        self.prompt = ""
        self._shown = self._wanted = ""
        self._drawing = False

    def compose(self) -> ComposeResult:
        """The prompt in a line, then the answer."""
        yield Static(markup=False, id="answered")
        yield Markdown(parser_factory=parser, open_links=False)

    def show(self, prompt: str, answer: str, growing: bool) -> None:
        """Show an answer from its beginning, or from its end while it is growing."""
        self.prompt = prompt
        self.query_one("#answered", Static).update(one_line(prompt))
        self._wanted = printable(answer)
        self.anchor(growing)
        if not growing:
            self.scroll_home(animate=False)
        self._draw()

    def grow(self, answer: str) -> None:
        """Show what the answer has become meanwhile."""
        self._wanted = printable(answer)
        self._draw()

    def _draw(self) -> None:
        if not self._drawing and self._shown != self._wanted:
            self._drawing = True
            self.run_worker(self._catch_up())

    async def _catch_up(self) -> None:
        """Draw until nothing has come meanwhile; one change at a time, for a document cannot take two at once."""
        document = self.query_one(Markdown)
        while self._shown != self._wanted:
            wanted = self._wanted
            if self._shown and wanted.startswith(self._shown):
                await document.append(wanted[len(self._shown) :])
            else:
                await document.update(wanted)
            self._shown = wanted
        self._drawing = False
