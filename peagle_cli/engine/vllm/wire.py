"""What crosses the border between the tap in a vLLM server and peagle: MessagePack over ZeroMQ, two sockets per tap.

The events socket (XPUB) sends a `Step` per engine step, to whoever listens. The control socket (REP) answers every
order with `Hello`, `Done` or `Refused`. Light, for it is imported inside vLLM.
"""

import msgspec

PROTOCOL = 1
"""Both sides must speak the same; raised when a message changes its meaning."""

MADE_FOR = "0.32"
"""The vLLM that the tap knows from the inside."""

SCHEDULER = "peagle_cli.engine.vllm.tap.TapScheduler"
ASYNC_SCHEDULER = "peagle_cli.engine.vllm.tap.AsyncTapScheduler"
EXTENSION = "peagle_cli.engine.vllm.worker.Extension"
"""What vLLM's flags --scheduler-cls and --worker-extension-cls are given."""

DRAFT_S = "peagle_draft_s"
"""Where vLLM's `DraftTokenIds`, on their way from a worker to the tap, carry the seconds they were drafted in."""


class Work(msgspec.Struct, frozen=True, array_like=True):
    """What one step did for one request.

    `position` counts the reply's tokens before the step. `prefilled` is the number of tokens of context that it
    processed beyond those of a decoding step: prompt tokens, after a preemption also the reply's own. The first
    `accepted` of `drafted` were accepted (`UNKNOWN_ID` stands for drafts that stay on the GPU). `sampled` are the
    step's tokens, accepted + 1 of them, or none while a prompt is still being processed; the first `emitted` of them
    belong to the reply. `depth` is the depth asked for.
    `draft_s` are the seconds in which the drafts were made, None where that cannot be told from verifying. `clock_s`
    counts from the request's arrival at the scheduler, without the time in which it was held.
    """

    request: str
    position: int
    prefilled: int
    depth: int
    drafted: tuple[int, ...]
    accepted: int
    sampled: tuple[int, ...]
    emitted: int
    draft_s: float | None
    clock_s: float
    finished: bool


class Step(msgspec.Struct, frozen=True, array_like=True):
    """One engine step. `sequence` counts messages: a gap tells how many a slow reader has lost.

    `verify_s` are the step's seconds without those in which it drafted for the next one, or all of them where the two
    cannot be told apart. `batch` is the number of requests in it.
    """

    sequence: int
    verify_s: float
    batch: int
    work: tuple[Work, ...]


class Greet(msgspec.Struct, frozen=True, tag=True):
    """Who is there? Answered by `Hello`."""


class Steer(msgspec.Struct, frozen=True, tag=True):
    """How requests whose id contains `key` are to be served from the next step on; those that have not come yet, too.

    `depth` of None is the deepest. With `held` they take no steps but those in `steps`, which are added to the steps
    still allowed.
    """

    key: str
    depth: int | None = None
    held: bool = False
    steps: int = 0


Order = Greet | Steer


class Hello(msgspec.Struct, frozen=True, tag=True):
    """What the tap sits in.

    `method` is vLLM's name of the drafting method, None without speculation; `parallel` says that one pass drafts all
    tokens. `depth` is the number of speculative tokens that the server was started with. `steers` says whether orders
    are obeyed; `times_drafts` whether drafting is timed apart; `samples` whether replies at a temperature above 0 have
    the target's distribution, with a seed or without. `notes` are sentences on what else a user should know.
    """

    protocol: int
    peagle: str
    vllm: str
    model: str
    drafter: str | None
    method: str | None
    parallel: bool
    depth: int
    context: int
    device: str
    device_name: str
    dtype: str
    weights: str
    threads: int
    ranks: int
    steers: bool
    times_drafts: bool
    samples: bool
    notes: tuple[str, ...] = ()


class Done(msgspec.Struct, frozen=True, tag=True):
    """The order holds."""


class Refused(msgspec.Struct, frozen=True, tag=True):
    """The order cannot be obeyed, and why."""

    reason: str


Answer = Hello | Done | Refused

_encoder = msgspec.msgpack.Encoder()
_orders: msgspec.msgpack.Decoder[Order] = msgspec.msgpack.Decoder(Order)
_answers: msgspec.msgpack.Decoder[Answer] = msgspec.msgpack.Decoder(Answer)
_steps = msgspec.msgpack.Decoder(Step)


def encode(message: Step | Order | Answer) -> bytes:
    """A message as bytes."""
    return _encoder.encode(message)


def decode_order(data: bytes) -> Order:
    """What was sent to the control socket; raises `msgspec.MsgspecError` for anything else."""
    return _orders.decode(data)


def decode_answer(data: bytes) -> Answer:
    """What the control socket answered; raises `msgspec.MsgspecError` for anything else."""
    return _answers.decode(data)


def decode_step(data: bytes) -> Step:
    """What the events socket sent; raises `msgspec.MsgspecError` for anything else."""
    return _steps.decode(data)


def events_address(address: str, rank: int = 0) -> str:
    """The events socket of a tap, given its address: ipc:///a/folder, or tcp://host:port and then the port itself.

    Each rank of a data-parallel server has a tap.
    """
    return _member(address, rank, "events", 2 * rank)


def control_address(address: str, rank: int = 0) -> str:
    """The control socket of a tap: in its folder, or behind the port of its events."""
    return _member(address, rank, "control", 2 * rank + 1)


def _member(address: str, rank: int, name: str, offset: int) -> str:
    if address.startswith("tcp://"):
        host, _, port = address.rpartition(":")
        return f"{host}:{int(port) + offset}"
    return f"{address}/{name}-{rank}"
