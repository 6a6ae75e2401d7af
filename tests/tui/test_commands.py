"""Slash commands: what is typed, and that the screen has an action for each."""

import pytest

from peagle_cli.errors import BadInputError
from peagle_cli.tui.commands import COMMANDS, parse
from peagle_cli.tui.screens.chat import ChatScreen


def test_takes_commands_with_their_arguments() -> None:
    command, argument = parse("/depth  3 ")
    assert (command.action, argument) == ("set_depth", "3")
    assert parse("/stop").argument == ""


@pytest.mark.parametrize("line", ["/", "/what", "/depth", "/stop now", "/method fast"])
def test_says_what_is_wrong_with_others(line: str) -> None:
    with pytest.raises(BadInputError):
        parse(line)


def test_every_command_is_an_action() -> None:
    assert all(hasattr(ChatScreen, f"action_{command.action}") for command in COMMANDS)


def test_a_theme_can_be_named_or_left_open() -> None:
    assert parse("/theme").command.call() == "theme"
    command, argument = parse("/theme light")
    assert command.call(argument) == "theme('light')"
