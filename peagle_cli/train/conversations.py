"""Training data: conversations as token ids, one JSON object a line.

`ids` are the tokens of the whole conversation as the target saw them, chat template included; the first `prompt` of
them are the prompt, all behind them the answer, which is what a drafter learns to foresee.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from peagle_cli.errors import BadInputError

SHORTEST_ANSWER = 8
"""Conversations with a shorter answer teach nothing worth their cost and are left out."""


class Conversation(msgspec.Struct, frozen=True):
    """A prompt of `prompt` tokens and the answer to it, together `ids`."""

    ids: list[int]
    prompt: int

    @property
    def answer(self) -> list[int]:
        """The answer's tokens."""
        return self.ids[self.prompt :]


def read_conversations(path: Path, vocab_size: int, max_length: int) -> list[Conversation]:
    """All conversations in a file, cut to `max_length` tokens, without those whose answer is then too short.

    Raises `BadInputError` for a file that cannot be read, a line that is no conversation, or a file without any.
    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise BadInputError(
            f"{path} cannot be read: {error.strerror}.", "Make data with `peagle train data`."
        ) from error
    decoder = msgspec.json.Decoder(Conversation)
    conversations = []
    for number, line in enumerate(lines, 1):
        conversation = _parse(decoder, line, f"Line {number} of {path}", vocab_size)
        if min(len(conversation.ids), max_length) - conversation.prompt >= SHORTEST_ANSWER:
            conversations.append(Conversation(conversation.ids[:max_length], conversation.prompt))
    if not conversations:
        raise BadInputError(
            f"{path} holds no conversation whose answer has {SHORTEST_ANSWER} tokens or more within {max_length}.",
            "Make data with `peagle train data`.",
        )
    return conversations


def _parse(decoder: msgspec.json.Decoder[Conversation], line: bytes, where: str, vocab_size: int) -> Conversation:
    try:
        conversation = decoder.decode(line)
    except msgspec.MsgspecError as error:
        raise BadInputError(f"{where} is not a conversation: {error}.", "Remove the line and start again.") from error
    if not 0 < conversation.prompt <= len(conversation.ids):
        raise BadInputError(
            f"{where} has a prompt of {conversation.prompt} tokens.", "Remove the line and start again."
        )
    if not all(0 <= token < vocab_size for token in conversation.ids):
        raise BadInputError(
            f"{where} has token ids that the target does not know.", "Make data with the target you train for."
        )
    return conversation


def frequent_tokens(conversations: Sequence[Conversation], count: int, vocab_size: int) -> list[int]:
    """The `count` most frequent answer tokens, in ascending order."""
    counts = [0] * vocab_size
    for conversation in conversations:
        for token in conversation.answer:
            counts[token] += 1
    return sorted(sorted(range(vocab_size), key=counts.__getitem__, reverse=True)[:count])
