"""What steps and prompts cost: within the engine, in the turns of a chat, and with candidates to inspect."""

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence

import msgspec

from peagle_cli.bench.order import Order
from peagle_cli.bench.report import Inside, Spread, Turn
from peagle_cli.bench.speed import ask
from peagle_cli.engine.child import THREADS
from peagle_cli.engine.program import Program
from peagle_cli.engine.protocol import Engine, EngineSpec, LaneSetting
from peagle_cli.models.progress import OnProgress, Progress
from peagle_cli.trace.events import Message
from peagle_cli.trace.rounds import Setting
from peagle_cli.tui.conversation import CANDIDATES_SHOWN

TURNS = 10

_QUESTION = "Tell me something more about ships, please."
_TURN_TOKENS = 60
_REPLY_TOKENS = 120
_REPEATS = 5


def inside(spec: EngineSpec, settings: Sequence[Setting], on_progress: OnProgress) -> Inside:
    """What passes and prompts cost, and the budget of steps with each of `settings`. Raises `PeagleError` when that
    cannot be measured."""
    on_progress(Progress("Measuring what steps cost"))
    order = msgspec.json.encode(Order(spec, tuple(settings))).decode()
    command = [sys.executable, "-P", "-m", "peagle_cli.bench.inside", order]
    with contextlib.closing(Program("The engine", command, {**THREADS, **os.environ})) as program:
        return msgspec.json.decode(program.hear(), type=Inside)


def of_a_chat(engine: Engine, setting: Setting, on_progress: OnProgress) -> Iterator[Turn]:
    """The first and the last turn of a conversation, in one lane."""
    on_progress(Progress(f"Measuring a chat of {TURNS} turns"))
    messages: list[Message] = []
    for number in range(1, TURNS + 1):
        messages.append(Message("user", _QUESTION))
        began, batches, _ = ask(engine, messages, LaneSetting("chat", *setting), _TURN_TOKENS)
        messages.append(Message("assistant", "".join(batch.text for batch in batches)))
        if number in (1, TURNS):
            yield Turn(number, len(began.prompt_ids), batches[0].prefill, batches[0].verify_s + batches[0].draft_s)


def with_candidates(engine: Engine, setting: Setting, on_progress: OnProgress) -> Spread:
    """The speed of replies whose candidates are told, over the speed of the same replies without."""
    on_progress(Progress("Measuring the cost of candidates"))
    ratios = []
    prompt = (Message("user", _QUESTION),)
    lane = LaneSetting("candidates", *setting)
    for i in range(_REPEATS + 1):
        (without, with_them) = (ask(engine, prompt, lane, _REPLY_TOKENS, count)[2] for count in (0, CANDIDATES_SHOWN))
        if i:  # the first is to warm up
            ratios.append(without / with_them)
    return Spread.of(ratios)
