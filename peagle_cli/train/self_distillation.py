"""Training data without a data set: the target writes prompts, and answers them.

A drafter learns to foresee one target, so only what that target says is worth learning from. Its own prompts come from
the chat template itself: given the beginning of a user's turn, it goes on as a user would.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from peagle_cli.engine.protocol import Message
from peagle_cli.errors import BadInputError, PeagleError
from peagle_cli.models.tokenizer import Tokenizer
from peagle_cli.train.conversations import Conversation
from peagle_cli.train.openings import opening
from peagle_cli.train.writers import CONTEXT, Order, Writer

PROMPT_TOKENS = 96
"""Longest prompt of the target's own, in tokens."""
PROMPT_TEMPERATURE = 1.0
ANSWER_TEMPERATURE = 0.7
SAMPLED_EVERY = 3
"""Every third answer is sampled, the others are greedy: people use both."""
SHORTEST_PROMPT = 12
"""Own prompts with fewer characters say nothing."""
_MARK = "\N{OBJECT REPLACEMENT CHARACTER}"


class Amount(NamedTuple):
    """How much has been written: conversations, and tokens in their answers."""

    conversations: int
    answer_tokens: int


def write_data(
    path: Path,
    tokenizer: Tokenizer,
    writer: Writer,
    prompts: Sequence[str],
    tokens: int,
    answer_tokens: int,
    on_progress: Callable[[Amount], None],
) -> Amount:
    """Append conversations to `path` until their answers have `tokens` tokens: to `prompts` first, then to the
    target's own.

    Answers have at most `answer_tokens` tokens. What `path` holds already counts, so the same command goes on where it
    was stopped. Raises `PeagleError` when the disk does not take it; all whole lines then stand.
    """
    amount = resume(path)
    on_progress(amount)
    while amount.answer_tokens < tokens:
        indices = range(amount.conversations, amount.conversations + writer.parallel)
        turns = _user_turns(tokenizer, writer, prompts, indices)
        orders = list(_answer_orders(tokenizer, turns, indices, answer_tokens))
        answers = writer.write(orders)
        conversations = [Conversation(o.ids + answer, len(o.ids)) for o, answer in zip(orders, answers, strict=True)]
        _append(path, conversations)
        amount = Amount(
            amount.conversations + len(conversations), amount.answer_tokens + sum(len(answer) for answer in answers)
        )
        on_progress(amount)
    return amount


def resume(path: Path) -> Amount:
    """What a data file holds; a last line that a kill cut short is removed. Raises `BadInputError` for another file."""
    if not path.exists():
        return Amount(0, 0)
    data = path.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    decoder = msgspec.json.Decoder(Conversation)
    try:
        answers = [len(decoder.decode(line).answer) for line in whole.splitlines()]
    except msgspec.MsgspecError as error:
        raise BadInputError(f"{path} exists and is no training data: {error}.", "Choose another file.") from error
    if len(whole) < len(data):
        with path.open("rb+") as file:
            file.truncate(len(whole))
    return Amount(len(answers), sum(answers))


def _user_turns(tokenizer: Tokenizer, writer: Writer, prompts: Sequence[str], indices: range) -> list[str]:
    """The prompts number `indices`: given ones as long as there are any, then the target's own."""
    given = list(prompts[indices.start : indices.stop])
    own = [index for index in indices if index >= len(prompts)]
    begun = tokenizer.chat_text([Message("user", _MARK)]).split(_MARK)[0]
    orders = [
        Order(tokenizer.encode(begun + opening(index)), PROMPT_TOKENS, PROMPT_TEMPERATURE, seed=2 * index)
        for index in own
    ]
    written = writer.write(orders) if orders else []
    texts = [opening(index) + tokenizer.decode(ids) for index, ids in zip(own, written, strict=True)]
    # One that came out empty is begun again as a plain question, so that numbers and lines stay in step.
    return given + [text.strip() if len(text) >= SHORTEST_PROMPT else "Tell me something new." for text in texts]


def _answer_orders(tokenizer: Tokenizer, turns: Sequence[str], indices: range, answer_tokens: int) -> Iterator[Order]:
    for index, turn in zip(indices, turns, strict=True):
        ids = tokenizer.chat_ids([Message("user", turn)])[: CONTEXT - answer_tokens]
        temperature = ANSWER_TEMPERATURE if index % SAMPLED_EVERY == 0 else 0.0
        yield Order(ids, answer_tokens, temperature, seed=2 * index + 1)


def _append(path: Path, conversations: Sequence[Conversation]) -> None:
    lines = b"".join(msgspec.json.encode(conversation) + b"\n" for conversation in conversations)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(lines)
    except OSError as error:
        raise PeagleError(
            f"{path} could not be written: {error.strerror}.", "Make room and run the command again."
        ) from error
