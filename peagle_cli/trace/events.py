"""The one vocabulary: small frozen events that every engine emits and everything else reads.

A lane is one reply being generated, by its own decoder with its own clock. A lane's events come in this order:
`Started`, then a `DraftBatch` per engine step with `Changed` between them, then `Finished` or `Failed`.
The first batch is the prefill: it drafts nothing and yields the target's first token.

Events hold facts only (ids, text, probabilities, seconds); every figure is computed from them (`metrics.py`).
"""

from typing import Literal

import msgspec

from peagle_cli.errors import PeagleError

Method = Literal["none", "eagle3", "peagle", "other"]
"""How drafts are made: not at all, by K passes of an EAGLE-3 drafter, by one pass of a P-EAGLE drafter, or by a server
in a way that it does not tell, or that is neither."""

METHOD_NAMES: dict[Method, str] = {"none": "plain", "eagle3": "EAGLE-3", "peagle": "P-EAGLE", "other": "drafts"}
_NAMES_BY_TEXT: dict[str, str] = {str(method): name for method, name in METHOD_NAMES.items()}

UNKNOWN_ID = -1
"""The id of a token of which an engine does not tell which it was."""

FinishReason = Literal["stop", "length", "context", "cancelled"]
"""End-of-sequence token, the request's token limit, the model's context is full, or the user stopped it."""


class Message(msgspec.Struct, frozen=True):
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str


class Candidate(msgspec.Struct, frozen=True):
    """One of the tokens that a model considered at a position, with its probability."""

    id: int
    text: str
    prob: float


class Token(msgspec.Struct, frozen=True, omit_defaults=True):
    """A token that was drafted or chosen; `UNKNOWN_ID` where the engine does not tell which.

    `text` is what it adds to the stream: "" inside an unfinished character and for special tokens.
    `prob` is the probability its author gave it (the drafter for drafted tokens, the target for the bonus), and
    `alternatives` are that model's most likely candidates, best first; both only when candidates were asked for.
    """

    id: int
    text: str
    prob: float | None = None
    alternatives: tuple[Candidate, ...] = ()


class TargetView(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the target thought of one drafted token.

    `prob` is the target's probability of the drafted token, `candidates` its most likely tokens there, best first.
    `threshold` is the uniform number the acceptance test drew (accepted when it is below the acceptance probability);
    None in greedy decoding and for positions behind the first rejection, which are never tested.
    """

    prob: float
    candidates: tuple[Candidate, ...]
    threshold: float | None = None


class Sampling(msgspec.Struct, frozen=True, omit_defaults=True):
    """How the target's tokens are chosen.

    `temperature` 0 is greedy. `top_k` 0 means no limit. `drafts` says how drafted tokens are chosen when the
    temperature is above 0: the drafter's first choice (vLLM's default), or sampled from its distribution.
    """

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int | None = None
    drafts: Literal["greedy", "sampled"] = "greedy"


SERVER = "server"
"""The device of a machine of which nothing is known but the address that it answers at."""

UNKNOWN = "unknown"
"""What a name says that is not known."""


class Machine(msgspec.Struct, frozen=True):
    """What ran it: `device` as torch names it, the processor's `name`, the activations' `dtype`, how the target's
    `weights` are kept ("bfloat16", "float32"), and the number of CPU `threads`.

    Of a server that does not tell, the device is `SERVER`, the name its address, and the rest unknown.
    """

    device: str
    name: str
    dtype: str
    weights: str
    threads: int

    @property
    def precision(self) -> str:
        """What is computed in, and how weights are kept where that is something else: "bfloat16 with int4 weights"."""
        return self.dtype if self.weights == self.dtype else f"{self.dtype} with {self.weights} weights"

    @property
    def parts(self) -> tuple[str, ...]:
        """What is known besides the processor's name, piece by piece: ("cpu", "bfloat16", "int4 weights")."""
        return (self.name,) if self.device == SERVER else (self.device, self.dtype, f"{self.weights} weights")

    @property
    def where(self) -> str:
        """Where it ran, and how precisely: "on cpu, bfloat16 with int4 weights", "at http://localhost:8000"."""
        return f"at {self.name}" if self.device == SERVER else f"on {self.device}, {self.precision}"


class Footprint(msgspec.Struct, frozen=True):
    """What a model asks of memory and of attention.

    `weights` are bytes, those that a drafter shares with its target not counted; `kv_cache` are bytes per token of
    context. `attention_flop` is the work of one query against one key, all layers and heads together: the product of
    the two and that with the value, 4 · layers · query heads · head size.
    """

    weights: int
    kv_cache: int
    attention_flop: int


class Started(msgspec.Struct, frozen=True, tag=True):
    """A lane begins to answer `prompt`, the user's last message.

    `prompt_ids` is the whole context including earlier turns; the first `reused` of them are already in the cache.
    `drafters` names the drafter of each method that can be switched to, `max_depths` how deep each can draft.
    """

    lane: str
    engine: str
    model: str
    drafters: dict[Method, str]
    max_depths: dict[Method, int]
    method: Method
    depth: int
    sampling: Sampling
    max_tokens: int
    prompt: str
    prompt_ids: tuple[int, ...]
    reused: int
    machine: Machine
    versions: dict[str, str]

    @property
    def drafter(self) -> str | None:
        """The drafter in use at the start; None for plain decoding."""
        return self.drafters.get(self.method)


class DraftBatch(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """One engine step: what was drafted, and what the target made of it.

    The first `accepted` tokens of `drafted` were accepted. `bonus` is the target's own token after them: a
    correction where a draft was rejected, a free extra token when all were accepted, the only token of a step that
    drafted nothing. `emitted` of those accepted + 1 tokens reached the reply; fewer when a stop cut it short.
    `step` counts the reply's steps from 0. `depth` is the depth asked for; near the end of the context fewer tokens may
    have been drafted.

    `draft_s` and `verify_s` are the step's seconds in the drafter and in the target. `clock_s` counts from the
    request's start on the lane's own clock, which stands still while other lanes run. `prefill` is the number of prompt
    tokens this step processed: above 0 only in the first, whose `verify_s` is the prefill's time.
    `target` has one view per drafted token when candidates were asked for; some engines have none of those rejected.
    """

    lane: str
    step: int
    method: Method
    depth: int
    drafted: tuple[Token, ...]
    accepted: int
    bonus: Token
    emitted: int
    draft_s: float
    verify_s: float
    clock_s: float
    prefill: int = 0
    target: tuple[TargetView, ...] = ()

    @property
    def tokens(self) -> tuple[Token, ...]:
        """The tokens that this step added to the reply."""
        return (*self.drafted[: self.accepted], self.bonus)[: self.emitted]

    @property
    def text(self) -> str:
        """What this step added to the reply."""
        return "".join(token.text for token in self.tokens)

    @property
    def rejected(self) -> tuple[Token, ...]:
        """The drafted tokens that were not accepted: the one the target disagreed with, and all behind it."""
        return self.drafted[self.accepted :]


class Changed(msgspec.Struct, frozen=True, tag=True):
    """From the next batch on, the lane's depth or method is another."""

    lane: str
    what: Literal["depth", "method"]
    old: int | str
    new: int | str

    @property
    def words(self) -> str:
        """For people: "depth 7 → 3", "method P-EAGLE → plain"."""
        old, new = (_NAMES_BY_TEXT.get(str(value), str(value)) for value in (self.old, self.new))
        return f"{self.what} {old} → {new}"


class Finished(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """The reply is complete. `note` is a sentence on how far its events can be trusted, where that needs saying."""

    lane: str
    reason: FinishReason
    note: str = ""


class Failed(msgspec.Struct, frozen=True, tag=True):
    """The lane's engine broke; what had been emitted stands. `hint` says what to do."""

    lane: str
    message: str
    hint: str = ""

    @property
    def error(self) -> PeagleError:
        """It as an error, for those who do not go on."""
        return PeagleError(self.message, self.hint)


Event = Started | DraftBatch | Changed | Finished | Failed

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


def encode(event: Event) -> bytes:
    """An event as one line of JSON, without the newline; its kind stands in the field `type`."""
    return _encoder.encode(event)


def decode(line: bytes | str) -> Event:
    """The event that `encode` wrote. Raises `msgspec.ValidationError` or `msgspec.DecodeError` for anything else."""
    return _decoder.decode(line)
