"""An engine whose words, drafts and times are given, and a recording of it: what the screens show of them is the same
on every machine."""

import datetime
import re
from collections.abc import Generator
from itertools import count
from pathlib import Path
from threading import Event as Flag

import msgspec

from peagle_cli.engine.protocol import Command, EngineInfo, LaneSetting, Message, Request, Stop
from peagle_cli.engine.recorded import header_of
from peagle_cli.recording.recording import Recording
from peagle_cli.recording.writer import Writer
from peagle_cli.trace.events import (
    Candidate,
    Changed,
    DraftBatch,
    Event,
    Failed,
    Finished,
    Machine,
    Method,
    Sampling,
    Started,
    TargetView,
    Token,
)
from tests.trace import batches

PROMPT = "Write a function that merges two sorted lists."
ANSWER = """Here is a function that **merges** two sorted lists:

```python
def merge(left, right):
    merged = []
    while left and right:
        smaller = left if left[0] <= right[0] else right
        merged.append(smaller.pop(0))
    return merged + left + right
```

| case        | time     |
|-------------|----------|
| both sorted | O(n + m) |

Call it like this:

```python
print(merge([1, 4], [2, 3]))  # [1, 2, 3, 4]
```
"""

INFO = EngineInfo(
    engine="torch",
    model="SmolLM2-135M-Instruct",
    drafters={"eagle3": "smollm2-eagle3", "peagle": "smollm2-peagle"},
    max_depths={"eagle3": 4, "peagle": 8},
    context=8192,
    machine=Machine(device="cpu", name="Some CPU", dtype="bfloat16", weights="int4", threads=2),
    versions={},
)
_END = "<|im_end|>"
_WORDS = [*re.findall(r" ?\w+|\n+| +|[^\w\s]", ANSWER), _END]
_IDS = {word: number for number, word in enumerate(dict.fromkeys(_WORDS))}
_COSTS = batches.Machine(())


class Scripted:
    """Says `ANSWER`. A request in a single lane is drafted less deeply from step `shallower_from` on; a reply that has
    come to `hold_at` tokens waits until it is stopped, one that has come to `fail_at` fails."""

    def __init__(
        self, *, shallower_from: int | None = None, hold_at: int | None = None, fail_at: int | None = None
    ) -> None:
        self.info = INFO
        self._shallower_from, self._hold_at, self._fail_at = shallower_from, hold_at, fail_at
        self._stopped = Flag()

    def run(self, request: Request) -> Generator[Event]:
        """The lane whose clock is behind takes the next step."""
        self._stopped.clear()
        lanes = {setting.name: _Lane(setting, request) for setting in request.lanes}
        for lane in lanes.values():
            yield lane.started()
        while lanes:
            name, lane = min(lanes.items(), key=lambda item: item[1].clock_s)
            if self._hold_at is not None and lane.told >= self._hold_at:
                self._stopped.wait()
            if self._stopped.is_set():
                yield from (Finished(name, "cancelled") for name in lanes)
                return
            if self._fail_at is not None and lane.told >= self._fail_at:
                yield Failed(name, "The engine's process ended.", "Its log says more: peagle locate.")
                return
            if len(request.lanes) == 1 and lane.step == self._shallower_from:
                yield lane.change(3)
            yield lane.batch()
            if lane.over:
                yield lanes.pop(name).finished()

    def control(self, command: Command) -> None:
        if isinstance(command, Stop):
            self._stopped.set()

    def close(self) -> None:
        self._stopped.set()


class _Lane:
    """One reply. Every draft is right, or wrong, by its place alone."""

    def __init__(self, setting: LaneSetting, request: Request) -> None:
        self.name, self.method, self.depth = setting.name, setting.method, setting.depth
        self.told, self.step, self.clock_s = 0, 0, 0.0
        self._request = request

    @property
    def over(self) -> bool:
        return self.told >= min(self._request.max_tokens, len(_WORDS))

    def started(self) -> Started:
        return INFO.started(
            self._request, self.name, method=self.method, depth=self.depth, prompt_ids=range(30), reused=0
        )

    def change(self, depth: int) -> Changed:
        old, self.depth = self.depth, depth
        return Changed(self.name, "depth", old, depth)

    def finished(self) -> Finished:
        return Finished(self.name, "stop" if self.told == len(_WORDS) else "length")

    def batch(self) -> DraftBatch:
        left = min(self._request.max_tokens, len(_WORDS)) - self.told
        count = 0 if self.method == "none" or not self.step else min(self.depth, len(_WORDS) - 1 - self.told)
        accepted = next((i for i in range(count) if _is_wrong(self.method, self.told, i)), count)
        draft_s, verify_s = (_COSTS.draft_s(self.method, count) if count else 0.0), _COSTS.verify_s(count)
        self.clock_s += draft_s + verify_s
        asked = self._request.candidates > 0
        batch = DraftBatch(
            lane=self.name,
            step=self.step,
            method=self.method,
            depth=self.depth,
            drafted=tuple(self._drafted(i, accepted) for i in range(count)),
            accepted=accepted,
            bonus=_token(self.told + accepted, 0.62 if asked else None),
            emitted=min(accepted + 1, left),
            draft_s=draft_s,
            verify_s=verify_s,
            clock_s=self.clock_s,
            prefill=0 if self.step else 30,
            target=tuple(self._view(i, accepted) for i in range(count)) if asked else (),
        )
        self.step += 1
        self.told += batch.emitted
        return batch

    def _drafted(self, i: int, accepted: int) -> Token:
        if i != accepted:
            return _token(self.told + i, 0.55 if self._request.candidates else None)
        return _token(self.told + i, 0.41 if self._request.candidates else None, wrong=True)

    def _view(self, i: int, accepted: int) -> TargetView:
        right, wrong = _token(self.told + i), _token(self.told + i, wrong=True)
        likely = [Candidate(right.id, right.text, 0.62), Candidate(wrong.id, wrong.text, 0.17)]
        return TargetView(likely[i == accepted].prob, tuple(likely))


def _is_wrong(method: Method, place: int, draft: int) -> bool:
    return (5 * place + 3 * draft) % 12 < (2 + draft if method == "peagle" else 1 + draft)


def _token(place: int, prob: float | None = None, wrong: bool = False) -> Token:
    """The answer's token at a place, or a wrong one, with what else its author considered where it has a chance."""
    other = min(place + 1, len(_WORDS) - 1)
    own, another = _shown(place, wrong), _shown(place, not wrong)
    last = Candidate(_IDS[_WORDS[other]], _shown(other, False)[1], 0.08)
    likely = (Candidate(*own, prob), Candidate(*another, 0.21), last) if prob is not None else ()
    return Token(*own, prob=prob, alternatives=likely)


def _shown(place: int, wrong: bool) -> tuple[int, str]:
    """Id and text of the answer's token at a place, or of another one of its tokens."""
    word = _WORDS[place]
    if wrong:
        word = next(other for other in (*_WORDS[place + 2 :], *_WORDS) if other.strip() and other != word)
    return _IDS[word], "" if word == _END else word


def recording(path: Path, *requests: Request) -> Recording:
    """A recording of these requests, written at a given time, event after event at the lanes' own pace."""
    header = msgspec.structs.replace(
        header_of(INFO, (80, 24)), created=datetime.datetime(2026, 1, 2, 3, 4, tzinfo=datetime.UTC)
    )
    ticks = count()
    writer = Writer(path, header, lambda: next(ticks) * 0.02)
    engine = Scripted(shallower_from=9)
    for request in requests:
        writer.ask(request.messages, [lane.name for lane in request.lanes], request.candidates)
        for event in engine.run(request):
            writer.add(event)
        writer.end()
    writer.close()
    return Recording.load(path)


CHAT = Request((Message("user", PROMPT),), (LaneSetting("chat", "peagle", 7),), Sampling(), 512, candidates=3)
RACE = Request(
    (Message("user", PROMPT),),
    (LaneSetting("plain", "none", 0), LaneSetting("eagle3", "eagle3", 3), LaneSetting("peagle", "peagle", 7)),
    Sampling(),
    60,
    candidates=3,
)
