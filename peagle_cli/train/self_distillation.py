"""Training data without a data set: the target writes prompts, and answers them.

A drafter learns to foresee one target, so only what that target says is worth learning from. Its own prompts come from
the chat template itself: given the beginning of a user's turn, it goes on as a user would.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from peagle_cli.engine.protocol import Message
from peagle_cli.errors import BadInputError, PeagleError
from peagle_cli.models.tokenizer import Tokenizer
from peagle_cli.train.conversations import Conversation
from peagle_cli.train.openings import opening
from peagle_cli.train.orders import CONTEXT, Order
from peagle_cli.train.writers import Writer

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
    was stopped: a conversation is kept as soon as it and all before it are there. Raises `PeagleError` when the disk
    does not take it; all whole lines then stand.
    """
    amount = resume(path)
    on_progress(amount)
    while amount.answer_tokens < tokens:
        # As many as are needed at least, if every answer has its full length: none is written in vain.
        needed = math.ceil((tokens - amount.answer_tokens) / answer_tokens)
        indices = range(amount.conversations, amount.conversations + min(writer.parallel, needed))
        turns = _user_turns(tokenizer, writer, prompts, indices)
        orders = list(_answer_orders(tokenizer, turns, indices, answer_tokens))
        for order, answer in zip(orders, _in_order(writer.write(orders)), strict=True):
            _append(path, Conversation(order.ids + answer, len(order.ids)))
            amount = Amount(amount.conversations + 1, amount.answer_tokens + len(answer))
            on_progress(amount)
    return amount


def _in_order(written: Iterable[tuple[int, list[int]]]) -> Iterator[list[int]]:
    """Continuations in the order of their indices, each as soon as it can be."""
    early: dict[int, list[int]] = {}
    due = 0
    for index, ids in written:
        early[index] = ids
        while due in early:
            yield early.pop(due)
            due += 1


def resume(path: Path) -> Amount:
    """What a data file holds; a last line that a kill cut short is removed. Raises `BadInputError` for another file."""
    if not path.exists():
        return Amount(0, 0)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BadInputError(f"{path} cannot be read: {error.strerror}.", "Choose another file.") from error
    whole = data[: data.rfind(b"\n") + 1]
    decoder = msgspec.json.Decoder(Conversation)
    answers = []
    for number, line in enumerate(whole.splitlines(), 1):
        try:
            answers.append(len(decoder.decode(line).answer))
        except msgspec.MsgspecError as error:
            raise BadInputError(
                f"Line {number} of {path} is not a conversation: {error}.", "Remove the line, or choose another file."
            ) from error
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
    written = _in_order(writer.write(orders)) if orders else ()
    texts = [opening(index) + tokenizer.decode(ids) for index, ids in zip(own, written, strict=True)]
    # One that came out empty is begun again as a plain question, so that numbers and lines stay in step.
    return given + [text.strip() if len(text) >= SHORTEST_PROMPT else "Tell me something new." for text in texts]


def _answer_orders(tokenizer: Tokenizer, turns: Sequence[str], indices: range, answer_tokens: int) -> Iterator[Order]:
    for index, turn in zip(indices, turns, strict=True):
        ids = tokenizer.chat_ids([Message("user", turn)])[: CONTEXT - answer_tokens]
        temperature = ANSWER_TEMPERATURE if index % SAMPLED_EVERY == 0 else 0.0
        yield Order(ids, answer_tokens, temperature, seed=2 * index + 1)


def _append(path: Path, conversation: Conversation) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(msgspec.json.encode(conversation) + b"\n")
    except OSError as error:
        raise PeagleError(
            f"{path} could not be written: {error.strerror}.", "Make room and run the command again."
        ) from error
