"""What every engine is to its callers: something that answers a request with events and obeys commands meanwhile.

Knows no torch, no vLLM and no screen. The types here also cross the border to the engine process as JSON.
"""

from collections.abc import Generator, Sequence
from typing import Literal, Protocol

import msgspec

from peagle_cli.models import progress
from peagle_cli.trace import events
from peagle_cli.trace.events import Event, Footprint, Machine, Method, Sampling, Started

Message = events.Message
"""One turn of a conversation."""


class LaneSetting(msgspec.Struct, frozen=True):
    """How one lane starts: its name, its method, and its depth (drafted tokens per step; 0 is plain decoding)."""

    name: str
    method: Method
    depth: int


class Request(msgspec.Struct, frozen=True):
    """A conversation to continue, in one lane or in several that race.

    `candidates` asks for that many alternatives of the drafter and of the target per position (0: none, at no cost).
    """

    messages: tuple[Message, ...]
    lanes: tuple[LaneSetting, ...]
    sampling: Sampling
    max_tokens: int
    candidates: int = 0


class SetDepth(msgspec.Struct, frozen=True, tag=True):
    """Draft `depth` tokens from the next step on."""

    lane: str
    depth: int


class SetMethod(msgspec.Struct, frozen=True, tag=True):
    """Draft by `method` from the next step on; the depth is kept, up to what that drafter can."""

    lane: str
    method: Method


class Stop(msgspec.Struct, frozen=True, tag=True):
    """End the reply after the step in progress."""


class Pause(msgspec.Struct, frozen=True, tag=True):
    """Take no further step until `Resume`, `Step` or `Stop`."""


class Resume(msgspec.Struct, frozen=True, tag=True):
    """Run freely again."""


class Step(msgspec.Struct, frozen=True, tag=True):
    """While paused: take one step."""


Command = SetDepth | SetMethod | Stop | Pause | Resume | Step

OnProgress = progress.OnProgress
Progress = progress.Progress
"""A stage of loading: told while the engine opens, and crosses the border too."""


class EngineInfo(msgspec.Struct, frozen=True, tag=True):
    """What was opened: shown in the header, in JSON output and in every recording.

    `context` is the longest context in tokens. `drafters` and `max_depths` are by method; a method that is not
    among them cannot be switched to. Plain decoding always can. `footprints` tell of the drafters and,
    as "none", of the target; empty where the engine does not know. `steerable` says whether commands are obeyed beyond
    `Stop`; where they are not, the depth is the greatest. `takes_turns` says whether the lanes of a request take turns
    step by step; otherwise they run one after the other. `notes` are sentences on what a user should know of this
    engine: what it cannot tell, and how to get it.
    """

    engine: str
    model: str
    drafters: dict[Method, str]
    max_depths: dict[Method, int]
    context: int
    machine: Machine
    versions: dict[str, str]
    footprints: dict[Method, Footprint] = {}
    steerable: bool = True
    takes_turns: bool = True
    notes: tuple[str, ...] = ()

    @property
    def methods(self) -> tuple[Method, ...]:
        """The methods that can be used, plain decoding first."""
        return ("none", *self.drafters)

    def started(
        self, request: Request, lane: str, *, method: Method, depth: int, prompt_ids: Sequence[int], reused: int
    ) -> Started:
        """A reply's first event, for the lane called `lane`; the rest as in `Started`."""
        return Started(
            lane=lane,
            engine=self.engine,
            model=self.model,
            drafters=self.drafters,
            max_depths=self.max_depths,
            method=method,
            depth=depth,
            sampling=request.sampling,
            max_tokens=request.max_tokens,
            prompt=request.messages[-1].content,
            prompt_ids=tuple(prompt_ids),
            reused=reused,
            machine=self.machine,
            versions=self.versions,
        )


class Engine(Protocol):
    """An opened engine. One request runs at a time; `control` may be called from another thread meanwhile."""

    @property
    def info(self) -> EngineInfo:
        """What was opened."""
        ...

    def run(self, request: Request) -> Generator[Event]:
        """Answer `request`; each item is asked for as it is needed and arrives as soon as it happened.

        Raises `BadInputError` before the first event when the request cannot be served. What breaks later becomes a
        `Failed` event. Closing the iterator ends the reply.
        """
        ...

    def control(self, command: Command) -> None:
        """Obey `command` between two steps of the running request; without one it does nothing."""
        ...

    def close(self) -> None:
        """Give everything back; the engine cannot be used afterwards."""
        ...


Precision = Literal["float32", "bfloat16", "int4"]
"""What is computed in; "int4" is bfloat16 with the target's weights kept at 4 bits."""


class EngineSpec(msgspec.Struct, frozen=True):
    """Which engine to open. None leaves the choice to the engine, which says in `EngineInfo` what it chose.

    `model` is a preset, a hub name or a folder; `drafters` are folders or hub names of checkpoints, and empty means
    those known for the model. `engine` is the embedded one ("torch"), a vLLM server of one's own ("vllm"), or the
    address of a server that runs. `method` and `depth` are what the first request will ask for: an engine that has to
    choose what to load goes by them. `flags` are for vLLM's server.
    """

    model: str | None = None
    drafters: tuple[str, ...] = ()
    device: str | None = None
    dtype: Precision | None = None
    engine: str = "torch"
    method: Method | None = None
    depth: int | None = None
    flags: tuple[str, ...] = ()


class Opening(Protocol):
    """An engine that loads. `cancel` may be called from another thread than the one that waits."""

    def wait(self, on_progress: OnProgress) -> Engine:
        """Wait until the engine can be used. `on_progress` is called meanwhile, and later, from whatever thread, when a
        request needs more to be loaded.

        Raises `BadInputError` for a spec that cannot be opened, `PeagleError` when opening fails, by `cancel` too.
        """
        ...

    def cancel(self) -> None:
        """End the loading at once."""
        ...
