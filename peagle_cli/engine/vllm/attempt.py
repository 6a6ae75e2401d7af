"""One request to one server: begun and read in a thread of its own, what it says put into a queue."""

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any
from uuid import uuid4

import msgspec

from peagle_cli.engine.protocol import Request
from peagle_cli.engine.vllm import wire
from peagle_cli.engine.vllm.batches import Texts, piece_of
from peagle_cli.engine.vllm.link import TapLink
from peagle_cli.engine.vllm.server import ReplyCounts, Server, Stream
from peagle_cli.errors import PeagleError
from peagle_cli.trace.events import Sampling

CHAT = "/v1/chat/completions"
_COMPLETIONS = "/v1/completions"


class Backend(msgspec.Struct, frozen=True):
    """A server that serves lanes of one method.

    `depth` is its drafts per step; `link` its tap, None without; `vllm` says that it knows vLLM's own parameters.
    `texts` makes a decoder for a reply that begins; None where the server tells no ids.
    """

    server: Server
    model: str
    link: TapLink | None
    depth: int
    vllm: bool
    texts: Callable[[], Texts] | None

    @property
    def steerable(self) -> bool:
        """Whether it obeys more than the end of a request."""
        return self.link is not None and self.link.hello.steers


class Began(msgspec.Struct, frozen=True):
    """The stream has begun; with the context that the server made of the messages, empty where it does not tell."""

    prompt_ids: tuple[int, ...]


class Ended(msgspec.Struct, frozen=True):
    """The stream has come to its end, for the `reason` that the server gives; with its counts, where it tells them."""

    reason: str
    counts: ReplyCounts | None = None


class Interrupted(msgspec.Struct, frozen=True):
    """Somebody wants the request to end."""


class Attempt:
    """A request, or the rest of one. `inbox` gets `Began`, pieces, `Ended` or a `PeagleError` from the stream, and what
    the tap tells; `interrupt` adds `Interrupted`. `began_s` is when it was sent, on the clock of the pieces."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.inbox: SimpleQueue[Any] = SimpleQueue()
        self.began_s = time.monotonic()
        self._key = uuid4().hex
        self._lock = threading.Lock()
        self._stream: Stream | None = None
        self._over = False
        if backend.link:
            backend.link.listen(self._key, self.inbox)

    def begin(self, path: str, body: dict[str, Any]) -> None:
        """Send it."""
        self.began_s = time.monotonic()
        threading.Thread(target=self._read, args=(path, body), name="a reply's stream", daemon=True).start()

    def steer(self, depth: int, held: bool, steps: int = 0) -> None:
        """Have it served so from the next step on."""
        if self.backend.link and self.backend.steerable:
            self.backend.link.steer(wire.Steer(self._key, depth, held, steps))

    def interrupt(self) -> None:
        """Have its reader stop."""
        self.inbox.put(Interrupted())

    def end(self) -> None:
        """End it, on the server too."""
        if self.backend.link:
            self.backend.link.forget(self._key)
        with self._lock:
            self._over = True
            if self._stream:
                self._stream.close()

    def _read(self, path: str, body: dict[str, Any]) -> None:
        try:
            stream = self.backend.server.stream(path, body, self._key)
            with self._lock:
                self._stream = stream
                if self._over:
                    stream.close()
            self._pass_on(stream)
        except PeagleError as error:
            self.inbox.put(error)

    def _pass_on(self, stream: Stream) -> None:
        reason, begun, counts = "stop", False, None
        for event in stream:
            if "error" in event:
                raise PeagleError(f"The server gave up: {event['error']}.")
            with contextlib.suppress(KeyError, TypeError, msgspec.ValidationError):
                counts = msgspec.convert(event["metrics"]["speculative_decoding"], ReplyCounts)
            for choice in event.get("choices") or []:
                if not begun:
                    begun = True
                    ids = event.get("prompt_token_ids") or choice.get("prompt_token_ids") or ()
                    self.inbox.put(Began(tuple(ids)))
                self.inbox.put(piece_of(choice, time.monotonic()))
                reason = choice.get("finish_reason") or reason
        self.inbox.put(Ended(reason, counts))


def chat(backend: Backend, request: Request, salt: str) -> tuple[str, dict[str, Any]]:
    """Path and body of a request for a reply. `salt` keeps the server's cache of prefixes to those who share it."""
    body: dict[str, Any] = {
        "messages": [{"role": message.role, "content": message.content} for message in request.messages],
        **_common(backend, request, request.max_tokens, salt),
    }
    if request.candidates and backend.vllm:
        body |= {"logprobs": True, "top_logprobs": request.candidates, "return_tokens_as_token_ids": True}
    return CHAT, body


def rest(
    backend: Backend, request: Request, context: Sequence[int], said: int, salt: str
) -> tuple[str, dict[str, Any]]:
    """Path and body of a request that goes on with a reply behind `context`, `said` tokens of which are the reply's."""
    return _COMPLETIONS, {"prompt": list(context), **_common(backend, request, request.max_tokens - said, salt)}


def sampling_like(sampling: Sampling) -> dict[str, Any]:
    """What asks vLLM to sample so. The server's own defaults, from the model's generation_config.json, must not creep
    in."""
    fixed = {"top_k": sampling.top_k, "min_p": 0.0, "repetition_penalty": 1.0}
    return {**_standard(sampling), **fixed}


def _standard(sampling: Sampling) -> dict[str, Any]:
    """What every OpenAI-compatible server knows of it."""
    seed = {} if sampling.seed is None else {"seed": sampling.seed}
    return {"temperature": sampling.temperature, "top_p": sampling.top_p, **seed}


def _common(backend: Backend, request: Request, max_tokens: int, salt: str) -> dict[str, Any]:
    sampling = request.sampling
    body = {"model": backend.model, "stream": True, "max_tokens": max_tokens}
    if backend.vllm:
        # What vLLM counted for the reply comes with its usage; a tap tells it anyway.
        counts = {} if backend.link else {"stream_options": {"include_usage": True}}
        return {**body, **sampling_like(sampling), "return_token_ids": True, "cache_salt": salt, **counts}
    return {**body, **_standard(sampling), **({"top_k": sampling.top_k} if sampling.top_k else {})}
