"""The conversation behind the screen: its turns, what the next request is, and one reply's figures as they grow.

Pure: knows events and requests, no screen and no thread. The assistant's words go back to the engine as they came;
what is shown of them is made safe elsewhere.
"""

from collections import deque
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

import msgspec

from peagle_cli.engine.contest import DEPTHS, Contest, settings_for
from peagle_cli.engine.lanes import LANE, starting_lane
from peagle_cli.engine.protocol import Command, EngineInfo, LaneSetting, Message, Request, SetDepth, SetMethod
from peagle_cli.engine.validate import check_lane, check_method, check_steerable
from peagle_cli.errors import BadInputError
from peagle_cli.prompts import Prompt
from peagle_cli.trace.advice import AutoDepth
from peagle_cli.trace.events import (
    Changed,
    DraftBatch,
    Event,
    Failed,
    Finished,
    FinishReason,
    Method,
    Started,
)
from peagle_cli.trace.metrics import RollingSpeed
from peagle_cli.trace.tally import Tally, TallyMark
from peagle_cli.tui.options import ChatOptions
from peagle_cli.wording import counted

RECENT_BATCHES = 100
CANDIDATES_SHOWN = 5
"""How many tokens that drafter and target considered can be looked at, at each place."""

RACE_TOKENS = 200
"""Tokens that a reply in a race has at most: enough to tell the lanes apart."""

_SAMPLE_S = 0.1  # of the lane's clock between two points of the speed's course
_REASONS: dict[FinishReason, str] = {
    "stop": "",
    "length": "cut at the limit of tokens per reply",
    "context": "cut: the model's context is full",
    "cancelled": "stopped",
}


class ReplyMark(NamedTuple):
    """Where a reply was."""

    setting: LaneSetting
    words: int
    tally: TallyMark
    speed: float | None
    speeds: int
    changes: int
    outcome: Finished | Failed | None
    rolling: RollingSpeed


class Reply:
    """One reply as it arrives.

    `speeds` is the course of the rolling speed as (seconds on the lane's clock, tokens per second), `changes` the
    seconds at which depth or method changed, `batches` the latest ones, newest last.
    """

    def __init__(self, setting: LaneSetting) -> None:
        self.setting = setting
        self._words: list[str] = []
        self.tally = Tally()
        self.metrics = self.tally.metrics
        self.speed: float | None = None
        self.speeds: list[tuple[float, float]] = []
        self.changes: list[float] = []
        self.batches: deque[DraftBatch] = deque(maxlen=RECENT_BATCHES)
        self.outcome: Finished | Failed | None = None
        self._rolling = RollingSpeed()

    @property
    def text(self) -> str:
        """What it says so far."""
        return "".join(self._words)

    def add(self, event: Event) -> None:
        """Take in the lane's next event."""
        self.tally.add(event)
        match event:
            case Started():
                self.setting = LaneSetting(event.lane, event.method, event.depth)
            case DraftBatch():
                self._add_batch(event)
            case Changed(what="depth"):
                self.setting = msgspec.structs.replace(self.setting, depth=event.new)
                self.changes.append(self.metrics.elapsed_s)
            case Changed():
                self.setting = msgspec.structs.replace(self.setting, method=event.new)
                self.changes.append(self.metrics.elapsed_s)
            case Finished() | Failed():
                self.outcome = event

    def mark(self) -> ReplyMark:
        """Where it is now."""
        return ReplyMark(
            self.setting,
            len(self._words),
            self.tally.mark(),
            self.speed,
            len(self.speeds),
            len(self.changes),
            self.outcome,
            self._rolling.copy(),
        )

    def until(self, mark: ReplyMark, batches: Iterable[DraftBatch]) -> "Reply":
        """The reply as it was at `mark`, with the latest `batches` then, to go on otherwise."""
        reply = Reply(mark.setting)
        reply._words = self._words[: mark.words]
        reply.tally = self.tally.until(mark.tally)
        reply.metrics = reply.tally.metrics
        reply.speed, reply.speeds, reply.changes = mark.speed, self.speeds[: mark.speeds], self.changes[: mark.changes]
        reply.batches.extend(batches)
        reply.outcome, reply._rolling = mark.outcome, mark.rolling.copy()
        return reply

    def closing(self) -> str:
        """The finished reply in one line: why it ended if not by itself, and what it came to."""
        m = self.metrics
        parts = [_REASONS[self.outcome.reason]] if isinstance(self.outcome, Finished) else []
        parts.append(counted(m.tokens, "token"))
        if m.tokens_per_second is not None:
            parts.append(f"{m.tokens_per_second:.0f} tokens/s")
        if m.mean_acceptance_length is not None:
            parts.append(f"{m.mean_acceptance_length:.2f} per step")
        if isinstance(self.outcome, Finished):
            parts.append(self.outcome.note)
        return " · ".join(part for part in parts if part)

    def _add_batch(self, batch: DraftBatch) -> None:
        self._words.append(batch.text)
        self.batches.append(batch)
        self.speed = self._rolling.add(batch)
        due = not self.speeds or batch.clock_s - self.speeds[-1][0] >= _SAMPLE_S
        if self.speed is not None and due:
            self.speeds.append((batch.clock_s, self.speed))


class Exchange(NamedTuple):
    """A prompt and its answer, as they came; the answer may still be growing."""

    prompt: str
    answer: str


class Conversation:
    """The turns so far, and the method and depth that the user wants."""

    def __init__(self, options: ChatOptions) -> None:
        self.options = options
        self.info: EngineInfo | None = None
        self.wanted: LaneSetting | None = None
        self.reply: Reply | None = None
        self._auto: AutoDepth | None = None
        self._turns: list[Message] = list(options.history)

    def engine_opened(self, info: EngineInfo) -> None:
        """The engine is known; what was wanted of one before stays wanted.

        Raises `BadInputError` when the options ask for what this engine cannot do.
        """
        first = self.wanted is None
        wanted = self.wanted or starting_lane(info, self.options.method, self.options.depth)
        check_lane(wanted, info)
        self.info, self.wanted = info, wanted
        if first and self.options.auto and wanted.method != "none":
            self.toggle_auto()

    @property
    def auto(self) -> bool:
        """Whether the depth follows the advice."""
        return self._auto is not None

    @property
    def deepest(self) -> int:
        """How deep the deepest of the engine's drafters can draft; 0 while it is not known."""
        return max(self.info.max_depths.values(), default=0) if self.info else 0

    def deepen(self, by: int) -> list[Command]:
        """Draft deeper by so much; see `set_depth`."""
        _, wanted = self._known()
        return self.set_depth(wanted.depth + by)

    def set_depth(self, depth: int) -> list[Command]:
        """Draft so many tokens per step; the commands that tell a running reply.

        Raises `BadInputError` where that cannot be.
        """
        info, wanted = self._known()
        if wanted.method == "none":
            raise BadInputError("Plain decoding drafts nothing: change the method first.")
        setting = LaneSetting(LANE, wanted.method, depth)
        check_lane(setting, info)
        check_steerable(info)
        self.wanted = setting
        self._auto = None
        return [SetDepth(LANE, depth)]

    def toggle_auto(self) -> list[Command]:
        """Let the depth follow the advice from now on, or no longer; the commands that tell a running reply.

        Raises `BadInputError` where nothing is drafted.
        """
        info, wanted = self._known()
        if wanted.method == "none":
            raise BadInputError("Plain decoding drafts nothing: change the method first.")
        check_steerable(info)
        if self._auto is not None:
            self._auto = None
            return []
        self._auto = AutoDepth(info.max_depths[wanted.method])
        return self._go_to(self._auto.depth)

    def follow(self, batch: DraftBatch) -> list[Command]:
        """What the advice makes of one more batch, while the depth follows it."""
        if self._auto is None:
            return []
        return self._go_to(self._auto.add(batch))

    def adopt(self, setting: LaneSetting) -> list[Command]:
        """Draft as the lane of a race did from now on; the commands that tell a running reply."""
        commands = self.set_method(setting.method)
        return commands if setting.method == "none" else [*commands, *self.set_depth(setting.depth)]

    def contest(self) -> Contest:
        """A race on the last prompt: plain decoding, every drafter at the usual depths, and what is wanted now.

        Raises `BadInputError` when nothing has been asked.
        """
        info, wanted = self._known()
        check_steerable(info)
        if not self._asked():
            raise BadInputError("There is no prompt to race on: ask something first.")
        settings = settings_for(info.drafters, (), DEPTHS, baseline=True)
        if wanted.method != "none" and wanted.depth:
            settings = tuple(dict.fromkeys([*settings, (wanted.method, wanted.depth)]))
        *history, last = self._messages()
        return Contest(
            settings,
            (Prompt((last.content,)),),
            1,
            self.options.sampling,
            min(self.options.max_tokens, RACE_TOKENS),
            tuple(history),
        )

    def next_method(self) -> list[Command]:
        """Draft by the next of the engine's methods; see `set_method`."""
        info, wanted = self._known()
        return self.set_method(info.methods[(info.methods.index(wanted.method) + 1) % len(info.methods)])

    def set_method(self, method: Method) -> list[Command]:
        """Draft by `method`, as deep as before if that drafter can; the commands that tell a running reply.

        Raises `BadInputError` where no drafter for it is loaded.
        """
        info, wanted = self._known()
        check_method(method, info)
        check_steerable(info)
        if self._auto is not None and method != wanted.method:
            self._auto = AutoDepth(info.max_depths[method]) if method != "none" else None
        if method == "none":
            self.wanted = LaneSetting(LANE, method, wanted.depth)
            return [SetMethod(LANE, method)]
        depth = wanted.depth or starting_lane(info, method, None).depth
        self.wanted = LaneSetting(LANE, method, min(depth, info.max_depths[method]))
        return [SetMethod(LANE, method), SetDepth(LANE, self.wanted.depth)]

    def ask(self, prompt: str) -> Request:
        """The request for a reply to `prompt`, which becomes the conversation's next turn."""
        _, wanted = self._known()
        self._end_turn()
        self._turns.append(Message("user", prompt))
        return self._request(wanted)

    def retry(self) -> Request:
        """The request for another reply to the last prompt, in place of the one it got.

        Raises `BadInputError` when nothing has been asked.
        """
        _, wanted = self._known()
        if not self._asked():
            raise BadInputError("There is no prompt to ask again.")
        return self._request(wanted)

    def refused(self) -> None:
        """The last prompt was not taken: it is no turn."""
        self.reply = None
        self._turns.pop()

    def clear(self) -> None:
        """Begin a new conversation."""
        self._turns.clear()
        self.reply = None

    @property
    def exchanges(self) -> list[Exchange]:
        """Prompts that have an answer, oldest first."""
        turns = [*self._turns]
        if self._asked() and self.reply is not None and self.reply.text:
            turns.append(Message("assistant", self.reply.text))
        return [
            Exchange(asked.content, answer.content)
            for asked, answer in pairwise(turns)
            if (asked.role, answer.role) == ("user", "assistant")
        ]

    def _asked(self) -> bool:
        """Whether there is a prompt that was asked here: a conversation that is continued begins with a reply."""
        return bool(self._turns) and self._turns[-1].role == "user"

    def _known(self) -> tuple[EngineInfo, LaneSetting]:
        if self.info is None or self.wanted is None:
            raise BadInputError("The engine is still loading.")
        return self.info, self.wanted

    def _request(self, setting: LaneSetting) -> Request:
        self.reply = Reply(setting)
        options = self.options
        return Request(self._messages(), (setting,), options.sampling, options.max_tokens, CANDIDATES_SHOWN)

    def _messages(self) -> tuple[Message, ...]:
        system = (Message("system", self.options.system),) if self.options.system else ()
        return (*system, *self._turns)

    def _go_to(self, depth: int) -> list[Command]:
        assert self.wanted is not None
        if depth == self.wanted.depth:
            return []
        self.wanted = LaneSetting(LANE, self.wanted.method, depth)
        return [SetDepth(LANE, depth)]

    def _end_turn(self) -> None:
        """Keep the last reply as a turn; a prompt that got no word in reply is dropped, for turns alternate."""
        if not self._asked():
            return
        if self.reply is not None and self.reply.text:
            self._turns.append(Message("assistant", self.reply.text))
        else:
            self._turns.pop()
