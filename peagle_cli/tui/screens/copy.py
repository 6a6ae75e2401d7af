"""Which of an answer's blocks of code to copy."""

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from peagle_cli.tui.keys import key_of
from peagle_cli.tui.markdown import CodeBlock


class CopyScreen(ModalScreen[CodeBlock]):
    """Ends with the block that is chosen, with None after Escape."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,ctrl+c", "dismiss", "close", priority=True, id="copy.close"),
    ]

    def __init__(self, blocks: Sequence[CodeBlock]) -> None:
        super().__init__()
        self._blocks = blocks

    def compose(self) -> ComposeResult:
        """A line or two for each block; the last, which is what was just said, is chosen at first."""
        listed = OptionList(*(Option(_option(block)) for block in self._blocks), id="blocks")
        listed.border_title = "copy a block of code"
        listed.border_subtitle = f"⏎ copies · {key_of(self.app, 'copy.close')} closes"
        listed.highlighted = len(self._blocks) - 1
        yield listed

    @on(OptionList.OptionSelected)
    def _chosen(self, message: OptionList.OptionSelected) -> None:
        self.dismiss(self._blocks[message.option_index])


def _option(block: CodeBlock) -> Text:
    return Text.assemble((block.first_line, "bold"), f"\n{block.description}", no_wrap=True, overflow="ellipsis")
