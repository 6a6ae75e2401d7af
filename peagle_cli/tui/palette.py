"""The palette: every command with every argument it can have, and every other key that acts now."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from peagle_cli.tui.commands import GROUPS, Command
from peagle_cli.tui.keys import bindings, keys_by_action, plain
from peagle_cli.tui.screens.chat import ChatScreen

_GROUP, _TITLE, _KEYS = 8, 16, 10  # cells
_KEYS_SHOWN = 2


class Entry(NamedTuple):
    """A line: what is done by `run`, and the keys that do it, as they are called."""

    group: str
    title: str
    help: str
    keys: tuple[str, ...]
    run: Callable[[], Any]

    def line(self, title: Content, group: str) -> Content:
        """It in columns, below the group's name."""
        return Content.assemble(
            (group.ljust(_GROUP), "$quiet"),
            title.stylize("bold") + Content(" " * max(1, _TITLE - title.cell_length)),
            " ".join(self.keys[:_KEYS_SHOWN]).ljust(_KEYS) + " ",
            (self.help, "$quiet"),
        )


class Palette(Provider):
    """Lists by group what can be done on the screen below."""

    async def discover(self) -> Hits:
        """Everything, each group's name at its first line."""
        group = ""
        for entry in self._entries():
            shown = entry.line(Content(entry.title), "" if entry.group == group else entry.group)
            yield DiscoveryHit(shown, entry.run, text=entry.title)
            group = entry.group

    async def search(self, query: str) -> Hits:
        """What is called, or does, something like `query`."""
        matcher = self.matcher(query)
        for entry in self._entries():
            if score := matcher.match(f"{entry.title} {entry.help}"):
                yield Hit(score, entry.line(matcher.highlight(entry.title), entry.group), entry.run, text=entry.title)

    def _entries(self) -> Iterator[Entry]:
        done: set[str] = set()
        if isinstance(self.screen, ChatScreen):
            for entry, action in _commands(self.screen):
                done.add(action)
                yield entry
        yield from self._keys(done)

    def _keys(self, done: set[str]) -> Iterator[Entry]:
        """What keys do, here and now, that no command does."""
        known = bindings()
        found: dict[str, Entry] = {}
        for active in self.screen.active_bindings.values():
            binding = active.binding
            action, words = plain(binding.action), binding.tooltip or binding.description
            if binding.id not in known or action in done or not words or not active.enabled:
                continue
            keys = found[action].keys if action in found else ()
            run = partial(self.app.run_action, binding.action, active.node)
            found[action] = Entry("keys", words, "", (*keys, self.app.get_key_display(binding)), run)
        yield from found.values()


def _commands(screen: ChatScreen) -> Iterator[tuple[Entry, str]]:
    """Every command with every argument it can have, and its action."""
    keys = keys_by_action(screen.every_binding, screen.app)
    for group, commands in GROUPS.items():
        for command in commands:
            for argument in _arguments(command, screen.arguments):
                action = command.call(argument)
                title = f"/{command.name} {argument}".rstrip()
                run = partial(screen.run_action, action)
                yield Entry(group, title, command.help, tuple(keys.get(action, ())), run), action


def _arguments(command: Command, known: Mapping[str, Sequence[str]]) -> list[str]:
    without = [""] if command.optional or not command.argument else []
    return [*without, *(command.choices or known.get(command.name, ()))]
