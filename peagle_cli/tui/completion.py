"""What a slash command that is being typed can become. Pure: reads the list of commands."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from peagle_cli.tui.commands import COMMANDS, Command


class Proposal(NamedTuple):
    """A line that the one being typed can become, and what it does. `whole` says that it can be sent as it is; another
    still wants its argument."""

    line: str
    help: str
    whole: bool


def proposals(typed: str, known: Mapping[str, Sequence[str]]) -> list[Proposal]:
    """Every command, or every argument of the command, that begins with what is typed; none when it is no command.

    `known` has the arguments, by command, that only the screen knows: how deep can be drafted, for one.
    """
    if not typed.startswith("/") or "\n" in typed:
        return []
    name, space, argument = typed[1:].partition(" ")
    command = next((c for c in COMMANDS if c.name == name and c.argument), None)
    arguments: list[Proposal] = []
    if command is not None and (space or command.optional):
        choices = command.choices or known.get(name, ())
        arguments = [
            Proposal(f"/{name} {choice}", command.help, True) for choice in choices if choice.startswith(argument)
        ]
    if space:
        return arguments
    named = [_named(c) for c in COMMANDS if c.name.startswith(name)]
    return [*named, *arguments]


def _named(command: Command) -> Proposal:
    whole = command.optional or not command.argument
    return Proposal(f"/{command.name}" if whole else f"/{command.name} ", command.help, whole)
