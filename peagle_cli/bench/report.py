"""What was measured, as it is written to JSON."""

import statistics
from collections.abc import Sequence

import msgspec

from peagle_cli.bench.screen_figures import ScreenFigures
from peagle_cli.trace.events import Machine, Method
from peagle_cli.trace.rounds import name_of


class Spread(msgspec.Struct, frozen=True):
    """The median of several measurements, and the quartiles on either side."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """The spread of `values`, at least one."""
        if len(values) == 1:
            return cls(values[0], values[0], values[0])
        low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
        return cls(middle, low, high)


class Step(msgspec.Struct, frozen=True):
    """Where the time of a step goes, in seconds: the drafter, the target, and all else until its events are here. The
    medians of replies' means; `accepted_length` are tokens per step."""

    accepted_length: float
    draft_s: float
    verify_s: float
    rest_s: float


class Contender(msgspec.Struct, frozen=True):
    """A program, and how it drafts: "none" for plain decoding."""

    program: str
    method: Method
    depth: int

    @property
    def name(self) -> str:
        """For people: "peagle P-EAGLE 3"."""
        return f"{self.program} {name_of((self.method, self.depth))}"


class Speed(Contender, frozen=True):
    """A program's tokens per second on the prompts, from the request to the last token, and its ratio to plain decoding
    by peagle, prompt by prompt. `same_tokens` is how many tokens a reply has in common with that plain decoding,
    before the first that is another; the median. `step` is known of peagle alone."""

    version: str
    precision: str
    tokens_per_second: Spread
    over_plain: Spread
    same_tokens: float
    step: Step | None = None


class Absent(Contender, frozen=True):
    """One that was to be measured and was not: it is not installed, or broke. `reason` says which, and how."""

    reason: str


class Pass(msgspec.Struct, frozen=True):
    """Seconds that the target takes for `width` tokens behind `context` others; the median."""

    width: int
    context: int
    seconds: float


class Prefill(msgspec.Struct, frozen=True):
    """Seconds until a prompt of `tokens` has been processed, by the target and by the drafter in use."""

    tokens: int
    target_s: float
    drafter_s: float


class Budget(msgspec.Struct, frozen=True):
    """Where a step's time goes, in seconds: the medians of many with `method` at `depth`, behind `context` tokens.

    `matrices` are the target layers' products with their weights, `head` the one with the vocabulary, `python` is the
    rest of the target's pass: small operations, and calling them all from Python. `draft` is the drafter's whole time,
    `draft_matrices` what of it are products with weights. `sampling` chooses the tokens; `event` makes the event that
    tells of the step, and its line of JSON.
    """

    method: Method
    depth: int
    context: int
    matrices: float
    attention: float
    head: float
    python: float
    draft: float
    draft_matrices: float
    sampling: float
    event: float

    @property
    def total(self) -> float:
        """Seconds per step."""
        target = self.matrices + self.attention + self.head + self.python
        return target + self.draft + self.sampling + self.event


class Inside(msgspec.Struct, frozen=True):
    """What steps cost, measured within the engine's process. `bytes_per_second` is how fast memory is read by all
    threads, and `weights` how many bytes of the target's weights a pass reads: it cannot take less time than these two
    say."""

    passes: tuple[Pass, ...]
    prefills: tuple[Prefill, ...]
    budgets: tuple[Budget, ...]
    bytes_per_second: float
    weights: int

    @property
    def least_pass_s(self) -> float:
        """Seconds it takes to read the weights once."""
        return self.weights / self.bytes_per_second


class Turn(msgspec.Struct, frozen=True):
    """A turn of a conversation: its whole context, the tokens of it that had to be processed, and the seconds until the
    reply's first token."""

    number: int
    context: int
    processed: int
    first_token_s: float


class StartUp(msgspec.Struct, frozen=True):
    """Seconds until the help is printed, the screen is painted, and a model that is here has said its first token."""

    help_s: Spread
    first_paint_s: Spread | None
    first_token_s: Spread


class Report(msgspec.Struct, frozen=True):
    """All that was asked for; parts that were not are empty."""

    created: str
    model: str
    machine: Machine
    versions: dict[str, str]
    prompts: int
    tokens: int
    speeds: tuple[Speed, ...] = ()
    absent: tuple[Absent, ...] = ()
    inside: Inside | None = None
    turns: tuple[Turn, ...] = ()
    candidates: Spread | None = None
    start_up: StartUp | None = None
    screen: ScreenFigures | None = None
