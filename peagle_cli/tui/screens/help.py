"""The help page: what the screen shows, the keys, the commands."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

from rich.table import Table
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from peagle_cli.tui.commands import GROUPS
from peagle_cli.tui.keys import applied, key_of, keys_by_action, plain
from peagle_cli.tui.widgets.course import CourseStrip
from peagle_cli.tui.widgets.inspector import Inspector

_ABOUT = (
    "A drafter proposes the next tokens, and the model checks them all in one step. What it agrees with is kept, and "
    "it adds a token of its own: the text is the same as without drafts, in fewer steps.\n\n"
    "EAGLE-3 drafts one token after the other, P-EAGLE all of them in one pass. The effective depth is the number of "
    "tokens that a step yields on average: accepted drafts, and the model's own. Deeper drafts can yield more, and "
    "cost more."
)
_FOCUS = "The letters act while the transcript has the focus ({} changes it), the function keys always."

PARTS: Mapping[str, Sequence[BindingType]] = {
    "Along the timeline": CourseStrip.BINDINGS,
    "In the inspector": Inspector.BINDINGS,
}
"""The keys of what every screen has, under their headings."""


class HelpScreen(ModalScreen[bool]):
    """Closed by Escape or F1. `sections` are the keys, each group under its heading, or without one. `prompt` says that
    the screen has one, and so the commands that are written there, and a tour. Ends with True where the tour is wanted.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,f1,q,enter", "dismiss(False)", "close", id="help.close"),
        Binding("t", "dismiss(True)", "tour", tooltip="How it works, with real steps", id="help.tour"),
    ]

    def __init__(self, sections: Mapping[str, Sequence[BindingType]], prompt: bool = True) -> None:
        super().__init__()
        self._prompt = prompt
        self._sections = sections

    def compose(self) -> ComposeResult:
        """One page that scrolls."""
        with VerticalScroll(id="help") as page:
            page.border_title = "peagle"
            tour, close = (key_of(self.app, name) for name in ("help.tour", "help.close"))
            page.border_subtitle = (
                f"{tour} explains it with real steps · {close} closes" if self._prompt else f"{close} closes"
            )
            yield Static(_ABOUT)
            if self._prompt:
                yield Static(_FOCUS.format(key_of(self.app, "prompt.complete")), markup=False)
            for heading, bindings in self._sections.items():
                if heading:
                    yield Static(heading, classes="heading")
                yield Static(_table(self._keys(bindings)))
            for commands in GROUPS.values() if self._prompt else ():
                yield Static(_table((command.usage, command.help) for command in commands))

    def _keys(self, listed: Sequence[BindingType]) -> Iterator[tuple[str, str]]:
        """What can be done by key, and all keys that do it. What has no words is an editing key, or said elsewhere."""
        words: dict[str, str] = {}
        for binding in applied(listed, self.app):
            words.setdefault(plain(binding.action), binding.tooltip or binding.description)
        keys = keys_by_action(listed, self.app)
        return ((" ".join(keys[action]), words[action]) for action in keys if words[action])


def _table(rows: Iterable[tuple[str, str]]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, style="bold", min_width=14)
    table.add_column()
    for left, right in rows:
        table.add_row(left, right)
    return table
