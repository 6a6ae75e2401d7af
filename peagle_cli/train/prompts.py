"""What conversations begin with: prompts from a file, and the openings from which the target writes its own."""

import random
from pathlib import Path
from typing import Any

import msgspec

from peagle_cli.errors import BadInputError

OPENINGS = (
    "",
    "Write a Python function that ",
    "Complete the following code:\n\n",
    "Fix the bug in this code:\n\n",
    "Explain ",
    "What is the difference between ",
    "Why do ",
    "How can I ",
    "Give me a list of ",
    "List five ",
    "Write an e-mail to ",
    "Write a short story about ",
    "Write a blog post about ",
    "Summarize the following text:\n\n",
    "Rewrite the following sentence ",
    "Solve this problem step by step: ",
    "A train ",
    "Calculate ",
    "You are ",
)
"""How people begin: with code, explanations, lists, e-mails, stories, mathematics. "" leaves all of it to the
target."""


def opening(index: int) -> str:
    """The opening of the target's own prompt number `index`."""
    return random.Random(f"opening {index}").choice(OPENINGS)


class _Line(msgspec.Struct):
    """A prompt as files have them: alone, or as the first of several turns."""

    prompt: str | None = None
    turns: list[str] = []


def read_prompts(path: Path) -> list[str]:
    """The prompts of a JSON Lines file: `prompt`, or the first of `turns`, of every object.

    Raises `BadInputError` when there are none, or a line is something else.
    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise BadInputError(f"{path} cannot be read: {error.strerror}.", "Name a file of prompts.") from error
    prompts = [_prompt(line, number, path) for number, line in enumerate(lines, 1) if line.strip()]
    if not prompts:
        raise BadInputError(f"{path} holds no prompts.", "Give one JSON object a line, with a `prompt`.")
    return prompts


def _prompt(line: bytes, number: int, path: Path) -> str:
    hint = 'Give one JSON object a line, such as {"prompt": "…"}.'
    try:
        fields: Any = msgspec.json.decode(line, type=_Line)
    except msgspec.MsgspecError as error:
        raise BadInputError(f"Line {number} of {path} is not a prompt: {error}.", hint) from error
    prompt: str | None = fields.prompt or next(iter(fields.turns), None)
    if not prompt:
        raise BadInputError(f"Line {number} of {path} has neither `prompt` nor `turns`.", hint)
    return prompt
