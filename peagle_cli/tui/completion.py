"""What a slash command that is being typed can become. Pure: reads the list of commands."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from peagle_cli.tui.commands import COMMANDS


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
    if not space:
        return [
            Proposal(f"/{c.name} " if c.argument else f"/{c.name}", c.help, not c.argument)
            for c in COMMANDS
            if c.name.startswith(name)
        ]
    command = next((c for c in COMMANDS if c.name == name and c.argument), None)
    if command is None:
        return []
    choices = command.choices or known.get(name, ())
    return [Proposal(f"/{name} {choice}", command.help, True) for choice in choices if choice.startswith(argument)]
