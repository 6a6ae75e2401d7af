"""Answers as Markdown: how it is read, and what code is in it. Pure.

Models are not to be trusted: HTML is text like any other, and nothing is fetched or opened.
"""

from typing import NamedTuple

from markdown_it import MarkdownIt

from peagle_cli.text import one_line
from peagle_cli.wording import counted


class CodeBlock(NamedTuple):
    """A block of code in an answer; `language` is as its author named it, empty where it has no name."""

    language: str
    text: str

    @property
    def description(self) -> str:
        """For people: "python, 14 lines"."""
        lines = self.text.count("\n") + 1
        return f"{one_line(self.language) or 'no language'}, {counted(lines, 'line')}"

    @property
    def first_line(self) -> str:
        """The first line that says something."""
        return one_line(next((line.strip() for line in self.text.splitlines() if line.strip()), ""))


def parser() -> MarkdownIt:
    """GitHub's Markdown, with tables, and without HTML."""
    return MarkdownIt("gfm-like", {"html": False})


def code_blocks(answer: str) -> list[CodeBlock]:
    """The blocks of code in `answer`, in order; one that is not finished yet counts."""
    tokens = parser().parse(answer)
    return [
        CodeBlock(token.info.strip().partition(" ")[0], token.content.rstrip("\n"))
        for token in tokens
        if token.type in ("fence", "code_block")
    ]
