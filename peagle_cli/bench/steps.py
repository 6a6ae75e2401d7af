"""What steps and prompts cost: by context, in the turns of a chat, and with candidates to inspect."""

from collections.abc import Iterator
from statistics import median

from peagle_cli.bench.report import AtContext, Spread, Turn
from peagle_cli.bench.speed import ask
from peagle_cli.engine.protocol import Engine, LaneSetting
from peagle_cli.models.progress import OnProgress, Progress
from peagle_cli.trace.events import Message
from peagle_cli.trace.rounds import PLAIN, Setting

CONTEXTS = (128, 1000, 4000, 8000)
"""About how many tokens of context steps are measured behind, as far as the model has room for them."""

TURNS = 10
CANDIDATES = 5
"""As many as a chat asks for."""

_STEPS = 16
_SENTENCE = "Count the ships that leave the harbour in the morning, and say how many of them come back at night. "
_QUESTION = "Tell me something more about ships, please."
_TURN_TOKENS = 60
_REPLY_TOKENS = 120
_REPEATS = 5


def by_context(engine: Engine, setting: Setting, on_progress: OnProgress) -> Iterator[AtContext]:
    """Steps behind ever longer prompts, plain and with `setting`, which share the prompt's cache."""
    short, long = (_context(engine, sentences) for sentences in (1, 21))
    for context in CONTEXTS:
        if context + (_STEPS + 1) * (setting[1] + 1) >= engine.info.context:
            continue
        on_progress(Progress(f"Measuring steps behind {context:,} tokens"))
        prompt = (Message("user", _SENTENCE * max(1, 1 + round((context - short) * 20 / (long - short)))),)
        lane = f"context {context}"
        began, first, _ = ask(engine, prompt, LaneSetting(lane, *PLAIN), _STEPS)
        _, second, _ = ask(engine, prompt, LaneSetting(lane, *setting), _STEPS * (setting[1] + 1))
        yield AtContext(
            tokens=len(began.prompt_ids),
            prefill_s=first[0].verify_s,
            plain_s=median(batch.verify_s for batch in first[1:]),
            draft_s=median(batch.draft_s for batch in second[1:]),
            verify_s=median(batch.verify_s for batch in second[1:]),
        )


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
        (without, with_them) = (ask(engine, prompt, lane, _REPLY_TOKENS, count)[2] for count in (0, CANDIDATES))
        if i:  # the first is to warm up
            ratios.append(without / with_them)
    return Spread.of(ratios)


def _context(engine: Engine, sentences: int) -> int:
    began, _, _ = ask(engine, (Message("user", _SENTENCE * sentences),), LaneSetting("warm-up", *PLAIN), 2)
    return len(began.prompt_ids)
