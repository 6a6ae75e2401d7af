"""What steps cost on some machine, as `peagle profile` measured it there; and replies re-timed as if they ran on it.

Times are by the number of drafted tokens and by the length of the context. Between what was measured, and beyond, they
are interpolated linearly in both.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from peagle_cli.errors import BadInputError
from peagle_cli.trace.costs import interpolate
from peagle_cli.trace.events import METHOD_NAMES, DraftBatch, Event, Machine, Method, Started

SCHEMA = 1


class StepTime(msgspec.Struct, frozen=True):
    """The median of `steps` steps that drafted so many tokens behind a context of so many."""

    drafted: int
    context: int
    seconds: float
    steps: int


class PrefillTime(msgspec.Struct, frozen=True):
    """How long a prompt of so many tokens took."""

    tokens: int
    seconds: float


class Profile(msgspec.Struct, frozen=True):
    """A machine's step times for a target and its drafters, and where they come from.

    `verify` and `prefill` are the target's, `draft` and `draft_prefill` the drafters', by method. A drafter reads the
    prompt once, before its first draft. `created` is the time of the measurement, in UTC.
    """

    schema: int
    created: str
    engine: str
    model: str
    drafters: dict[Method, str]
    machine: Machine
    versions: dict[str, str]
    verify: tuple[StepTime, ...]
    draft: dict[Method, tuple[StepTime, ...]]
    prefill: tuple[PrefillTime, ...]
    draft_prefill: dict[Method, tuple[PrefillTime, ...]]

    @property
    def title(self) -> str:
        """Of what it is, in a few words."""
        return f"{self.model} on {self.machine.name} ({self.machine.device}), {self.created[:10]}"

    @classmethod
    def read(cls, path: Path) -> "Profile":
        """The profile in a file. Raises `BadInputError` when it cannot be read or used."""
        try:
            profile = msgspec.json.decode(path.read_bytes(), type=cls)
        except OSError as error:
            raise BadInputError(
                f"{path} cannot be read: {error.strerror}.", "Name a file of peagle profile."
            ) from error
        except msgspec.MsgspecError as error:
            raise BadInputError(f"{path} is no profile: {error}.", "peagle profile makes one.") from error
        if problem := profile._problem():
            raise BadInputError(f"The profile {path} cannot be used: {problem}.", "Measure it again.")
        return profile

    def check_methods(self, methods: Iterable[Method]) -> None:
        """Raise `BadInputError` unless the profile tells what each of `methods` costs."""
        for method in methods:
            if method != "none" and not self.draft.get(method):
                raise BadInputError(f"The profile knows no {METHOD_NAMES[method]} drafter.", "Leave that method out.")

    def verify_s(self, drafted: int, context: int) -> float:
        """Seconds in the target of a step that verifies so many drafts."""
        return _at(self.verify, drafted, context)

    def draft_s(self, method: Method, drafted: int, context: int) -> float:
        """Seconds in the drafter of a step that drafts so many tokens."""
        return _at(self.draft[method], drafted, context) if drafted else 0.0

    def prefill_s(self, tokens: int) -> float:
        """Seconds in the target for a prompt."""
        return _prefill(self.prefill, tokens)

    def draft_prefill_s(self, method: Method, tokens: int) -> float:
        """Seconds in the drafter for a prompt."""
        return 0.0 if method == "none" else _prefill(self.draft_prefill[method], tokens)

    def steps(self, steps: Iterable[DraftBatch], context: int) -> Iterator[DraftBatch]:
        """`steps`, none of them a prefill, with the times that they take here behind so many tokens."""
        for step in steps:
            drafted = len(step.drafted)
            yield msgspec.structs.replace(
                step,
                draft_s=self.draft_s(step.method, drafted, context),
                verify_s=self.verify_s(drafted, context),
            )

    def _problem(self) -> str:
        if self.schema != SCHEMA:
            return f"it is of schema {self.schema}, and {SCHEMA} is known"
        steps = (self.verify, *self.draft.values())
        prefills = (self.prefill, *self.draft_prefill.values())
        if not all(steps) or not all(prefills) or self.draft.keys() != self.draft_prefill.keys():
            return "times are missing"
        times = [time.seconds for group in steps for time in group]
        times += [time.seconds for group in prefills for time in group]
        return "" if all(0 < time < math.inf for time in times) else "a time is not above 0"


def simulate(events: Iterable[Event], profile: Profile) -> Iterator[Event]:
    """The events of lanes as if each step had taken what it takes in `profile`; all else is as it was."""
    contexts: dict[str, int] = {}
    clocks: dict[str, float] = {}
    for event in events:
        if isinstance(event, Started):
            contexts[event.lane], clocks[event.lane] = len(event.prompt_ids), 0.0
        if not isinstance(event, DraftBatch):
            yield event
            continue
        context, drafted = contexts[event.lane], len(event.drafted)
        if event.prefill:
            draft_s = profile.draft_prefill_s(event.method, event.prefill) if event.depth else 0.0
            verify_s = profile.prefill_s(event.prefill)
        else:
            draft_s = profile.draft_s(event.method, drafted, context)
            verify_s = profile.verify_s(drafted, context)
        contexts[event.lane] += event.emitted
        clocks[event.lane] += draft_s + verify_s
        yield msgspec.structs.replace(event, draft_s=draft_s, verify_s=verify_s, clock_s=clocks[event.lane])


def _at(times: Sequence[StepTime], drafted: int, context: int) -> float:
    by_context: dict[int, dict[int, float]] = {}
    for time in times:
        by_context.setdefault(time.context, {})[time.drafted] = time.seconds
    return interpolate({length: interpolate(points, drafted) for length, points in by_context.items()}, context)


def _prefill(times: Sequence[PrefillTime], tokens: int) -> float:
    points: Mapping[int, float] = {time.tokens: time.seconds for time in times}
    shortest = min(points)
    # A pass has a price of its own: a prompt shorter than all that were measured costs no less than its share.
    return interpolate(points, tokens) if tokens >= shortest or len(points) == 1 else points[shortest]
