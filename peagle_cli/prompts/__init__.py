"""Prompts to compare drafters on, or to train and try them with: a set of our own, or a file.

A file holds JSON lines with `turns`, the user's messages of one conversation, and if they like a `category` (the form
of MT-Bench and Spec-Bench); or plain text, one prompt a line.
"""

from pathlib import Path

import msgspec

from peagle_cli.errors import BadInputError

BUILT_IN = Path(__file__).parent / "builtin.jsonl"


class Prompt(msgspec.Struct, frozen=True):
    """A conversation's user messages, at least one, and what kind of text they ask for."""

    turns: tuple[str, ...]
    category: str = ""


_decoder: msgspec.json.Decoder[Prompt] = msgspec.json.Decoder(Prompt)


def read_prompts(path: Path = BUILT_IN) -> tuple[Prompt, ...]:
    """The prompts in a file. Raises `BadInputError` when it cannot be read or has none."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise BadInputError(f"{path} cannot be read: {error.strerror}.", "Name a file of prompts.") from error
    except UnicodeDecodeError as error:
        raise BadInputError(f"{path} is not UTF-8 text.", "Save it in that encoding.") from error
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if not lines:
        raise BadInputError(f"There is no prompt in {path}.", "Write one a line.")
    if not lines[0][1].lstrip().startswith("{"):
        return tuple(Prompt((line.strip(),)) for _, line in lines)
    return tuple(_parse(line, f"Line {number} of {path}") for number, line in lines)


def first_turns(path: Path = BUILT_IN) -> list[str]:
    """The prompts in a file, of conversations what they begin with. Raises as `read_prompts` does."""
    return [prompt.turns[0] for prompt in read_prompts(path)]


def _parse(line: str, where: str) -> Prompt:
    try:
        prompt = _decoder.decode(line)
    except msgspec.MsgspecError as error:
        raise BadInputError(f"{where} is no prompt: {error}.", 'It should look like {"turns": ["…"]}.') from error
    if not prompt.turns or not all(turn.strip() for turn in prompt.turns):
        raise BadInputError(f"{where} has an empty turn.", "Every turn must ask for something.")
    return prompt
