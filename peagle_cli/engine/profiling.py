"""Measures what steps cost on this machine: target and drafters, by number of drafted tokens and by context."""

import contextlib
import datetime
from collections.abc import Callable, Iterator
from statistics import median

from peagle_cli.engine.protocol import Engine, LaneSetting, Request
from peagle_cli.trace.events import DraftBatch, Failed, Message, Method, Sampling, Started
from peagle_cli.trace.profile import SCHEMA, PrefillTime, Profile, StepTime
from peagle_cli.trace.rounds import PLAIN, Setting

CONTEXTS = (64, 512, 2048)
"""About how many tokens of context steps are measured behind, as far as the model has room for them."""

STEPS = 12
"""Steps per depth and context, whose median is kept."""

_SENTENCE = "Count the ships that leave the harbour in the morning, and say how many of them come back at night. "
_PROBE = 20  # sentences that tell how many tokens one has
_WARM_UP_TOKENS = 8


class Profiler:
    """Makes an engine take steps at every depth behind every context. `on_progress` is told the share that is done."""

    def __init__(self, engine: Engine, on_progress: Callable[[float], None]) -> None:
        self._engine = engine
        self._on_progress = on_progress
        self._verify: dict[tuple[int, int], list[float]] = {}
        self._draft: dict[Method, dict[tuple[int, int], list[float]]] = {}
        self._prefill: list[PrefillTime] = []
        self._draft_prefill: dict[Method, list[PrefillTime]] = {}

    def measure(self) -> Profile:
        """Measure all, which takes a while. Raises `PeagleError` when the engine fails."""
        info = self._engine.info
        settings: list[Setting] = [PLAIN]
        for method in sorted(info.drafters):
            settings += [(method, depth) for depth in range(1, info.max_depths[method] + 1)]
        prompts = list(self._prompts())
        for i, prompt in enumerate(prompts):
            for j, setting in enumerate(settings):
                self._measure(prompt, LaneSetting(f"profile {i}", *setting))
                self._on_progress((i * len(settings) + j + 1) / (len(prompts) * len(settings)))
        return self._profile()

    def _prompts(self) -> Iterator[str]:
        """Prompts that make contexts of the lengths in `CONTEXTS`. Finding them warms the engine up."""
        short, long = (self._prompt_tokens(_SENTENCE * sentences) for sentences in (1, 1 + _PROBE))
        deepest = max(self._engine.info.max_depths.values(), default=0)
        room = self._engine.info.context - (STEPS + 1) * (deepest + 1)
        for context in CONTEXTS:
            if context < room or context == CONTEXTS[0]:
                yield _SENTENCE * max(1, 1 + round((context - short) * _PROBE / (long - short)))

    def _prompt_tokens(self, prompt: str) -> int:
        events = self._engine.run(_request(prompt, LaneSetting("warm-up", "none", 0), _WARM_UP_TOKENS))
        started = [event for event in events if isinstance(event, Started)]
        return len(started[0].prompt_ids)

    def _measure(self, prompt: str, setting: LaneSetting) -> None:
        """Steps of one setting. As long as the lane's name stays, its caches do: only the first setting behind a prompt
        processes it in the target, and the first of each method in the drafter."""
        request = _request(prompt, setting, (STEPS + 1) * (setting.depth + 1))
        context = steps = 0
        with contextlib.closing(self._engine.run(request)) as events:
            for event in events:
                if isinstance(event, Failed):
                    raise event.error
                if isinstance(event, Started):
                    context = len(event.prompt_ids)
                if isinstance(event, DraftBatch):
                    self._add(event, setting, context)
                    steps += not event.prefill
                if steps == STEPS:
                    return

    def _add(self, batch: DraftBatch, setting: LaneSetting, context: int) -> None:
        method = setting.method
        if batch.prefill:
            if method == "none":
                self._prefill.append(PrefillTime(batch.prefill, batch.verify_s))
            elif setting.depth == 1:
                self._draft_prefill.setdefault(method, []).append(PrefillTime(context, batch.draft_s))
            return
        point = len(batch.drafted), context
        self._verify.setdefault(point, []).append(batch.verify_s)
        if batch.drafted:
            self._draft.setdefault(method, {}).setdefault(point, []).append(batch.draft_s)

    def _profile(self) -> Profile:
        info = self._engine.info
        return Profile(
            schema=SCHEMA,
            created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            engine=info.engine,
            model=info.model,
            drafters=info.drafters,
            machine=info.machine,
            versions=info.versions,
            verify=_times(self._verify),
            draft={method: _times(points) for method, points in self._draft.items()},
            prefill=tuple(self._prefill),
            draft_prefill={method: tuple(times) for method, times in self._draft_prefill.items()},
        )


def _times(points: dict[tuple[int, int], list[float]]) -> tuple[StepTime, ...]:
    return tuple(
        StepTime(drafted, context, median(seconds), len(seconds))
        for (drafted, context), seconds in sorted(points.items())
    )


def _request(prompt: str, setting: LaneSetting, max_tokens: int) -> Request:
    return Request((Message("user", prompt),), (setting,), Sampling(), max_tokens)
