"""All that the chat can be told to do, as data: slash commands, palette, completion and help page read this list."""

from typing import NamedTuple

from peagle_cli.errors import BadInputError
from peagle_cli.trace.events import METHOD_NAMES


class Command(NamedTuple):
    """A slash command: `action` is the screen's action, called with the argument where `argument` names one.

    `choices` are what the argument can be; empty for what only the screen knows. `optional` says that the argument may
    be left out.
    """

    name: str
    action: str
    help: str
    argument: str = ""
    choices: tuple[str, ...] = ()
    optional: bool = False

    @property
    def usage(self) -> str:
        """How it is typed: "/depth N", "/theme [NAME]"."""
        return f"/{self.name} {f'[{self.argument}]' if self.optional else self.argument}".rstrip()

    def call(self, argument: str = "") -> str:
        """The action with an argument, as Textual takes it."""
        return f"{self.action}({argument!r})" if argument else self.action


GROUPS = {
    "look": (
        Command("inspect", "inspect", "look at a token: why it was kept or not"),
        Command("rejected", "rejected", "show rejected drafts, also those behind them, or none"),
        Command("timeline", "timeline", "go along the steps of the conversation"),
        Command("figures", "figures", "timeline and figures, of this reply and of the conversation"),
    ),
    "reply": (
        Command("stop", "stop", "end the reply"),
        Command("pause", "pause", "hold the engine between two steps, or let it go on"),
        Command("step", "step", "take one step while paused"),
        Command("slower", "slower", "slow motion, fewer steps a second"),
        Command("faster", "faster", "more steps a second, up to full speed"),
        Command("retry", "retry", "ask the last prompt again"),
    ),
    "drafts": (
        Command("race", "race", "race all drafters on the last prompt"),
        Command("auto", "auto", "let the depth follow the advice, or no longer"),
        Command("method", "set_method", "draft with another method", "NAME", tuple(METHOD_NAMES)),
        Command("depth", "set_depth", "draft so many tokens per step", "N"),
    ),
    "words": (
        Command("view", "view", "the answer as it is meant to be read, or its tokens again"),
        Command("copy", "copy", "copy the answer, or a block of its code", "WHAT", ("answer", "code")),
        Command("search", "search", "search the transcript"),
        Command("edit", "edit_prompt", "write the prompt in your editor"),
        Command("clear", "clear", "begin a new conversation"),
    ),
    "peagle": (
        Command("help", "help", "what the screen shows, and its keys"),
        Command("tour", "tour", "how it works, with steps of this session"),
        Command("theme", "theme", "wear a theme, or choose one with a preview", "NAME", optional=True),
        Command("restart", "restart", "start the engine again"),
        Command("exit", "leave", "leave"),
    ),
}
"""The commands, by what one does with them."""

COMMANDS = tuple(command for group in GROUPS.values() for command in group)
_BY_NAME = {command.name: command for command in COMMANDS}
_BY_NAME["quit"] = _BY_NAME["exit"]  # what many try first


class Invocation(NamedTuple):
    """A command and its argument."""

    command: Command
    argument: str


def parse(line: str) -> Invocation:
    """What a line that begins with a slash asks for. Raises `BadInputError` where that is nothing we know."""
    name, _, argument = line.removeprefix("/").strip().partition(" ")
    command = _BY_NAME.get(name)
    argument = argument.strip()
    if command is None:
        raise BadInputError(f"There is no command /{name}.", "/help lists them.")
    if not argument and command.optional:
        return Invocation(command, "")
    if bool(argument) != bool(command.argument):
        raise BadInputError(f"It is {command.usage}.")
    if command.choices and argument not in command.choices:
        raise BadInputError(f"/{name} takes one of {', '.join(command.choices)}.")
    return Invocation(command, argument)
