"""The small list above the prompt: what the command being typed can become."""

from collections.abc import Sequence

from textual import events
from textual.message import Message

from peagle_cli.tui.completion import Proposal
from peagle_cli.tui.widgets.panel import Panel, Pieces

MOST_ROWS = 8
_COLUMN = 16


class Completions(Panel):
    """Lies over what is above the prompt, so that nothing moves when it comes and goes. The prompt keeps the focus and
    says which line is `chosen`."""

    class Taken(Message):
        """A proposal was clicked on."""

        def __init__(self, proposal: Proposal) -> None:
            super().__init__()
            self.proposal = proposal

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self.display = False
        self._proposals: Sequence[Proposal] = ()
        self._chosen = 0

    def propose(self, proposals: Sequence[Proposal], chosen: int) -> None:
        """Show these, none to show nothing."""
        if (proposals, chosen) == (self._proposals, self._chosen):
            return
        self._proposals, self._chosen = proposals, chosen
        self.display = bool(proposals)
        self.styles.height = min(MOST_ROWS, len(proposals))
        self.redraw()

    def draw(self) -> list[Pieces]:
        """The proposals around the chosen one."""
        first = self._first()
        width = max((len(p.line) for p in self._proposals), default=0)
        column = max(_COLUMN, width + 2)
        lines = []
        for index, proposal in enumerate(self._proposals[first : first + MOST_ROWS], first):
            name, help = ("chosen", "chosen") if index == self._chosen else ("value", "label")
            text = self.ink(f" {proposal.line.rstrip():<{column}}", name)
            room = max(0, self.size.width - column - 1)
            lines.append([text, self.ink(proposal.help[:room].ljust(room), help)])
        return lines

    def on_click(self, event: events.Click) -> None:
        """Take the proposal that was clicked on."""
        event.stop()
        index = self._first() + event.y
        if index < len(self._proposals):
            self.post_message(self.Taken(self._proposals[index]))

    def _first(self) -> int:
        return max(0, min(self._chosen - MOST_ROWS // 2, len(self._proposals) - MOST_ROWS))
