"""What a slash command that is being typed can become."""

import pytest

from peagle_cli.tui.commands import COMMANDS
from peagle_cli.tui.completion import proposals

KNOWN = {"depth": ["0", "1", "10"], "theme": ["dark", "light"]}


@pytest.mark.parametrize(
    ("typed", "lines"),
    [
        ("/dep", ["/depth "]),
        ("/depth ", ["/depth 0", "/depth 1", "/depth 10"]),
        ("/depth 1", ["/depth 1", "/depth 10"]),
        ("/method e", ["/method eagle3"]),
        ("/stop", ["/stop"]),
        ("/theme", ["/theme", "/theme dark", "/theme light"]),
        ("/theme l", ["/theme light"]),
        ("/stop ", []),
        ("/nothing", []),
        ("depth", []),
        ("", []),
        ("/de\n", []),
    ],
)
def test_proposes_commands_and_their_arguments(typed: str, lines: list[str]) -> None:
    assert [proposal.line for proposal in proposals(typed, KNOWN)] == lines


def test_what_wants_an_argument_cannot_be_sent_without() -> None:
    whole = {proposal.line: proposal.whole for proposal in proposals("/", KNOWN)}
    assert len(whole) == len(COMMANDS)
    assert not whole["/depth "] and whole["/stop"]
