"""One lane's reply from servers: its events, and the commands on the way."""

import threading
from collections.abc import Callable, Generator, Sequence
from queue import Empty
from typing import Protocol

from peagle_cli.engine.protocol import LaneSetting, Request
from peagle_cli.engine.vllm.attempt import Attempt, Backend, Began, Ended, Interrupted, chat, rest
from peagle_cli.engine.vllm.batches import BatchMaker, Piece
from peagle_cli.engine.vllm.launch import UnwantedError
from peagle_cli.engine.vllm.link import Lost, Told
from peagle_cli.engine.vllm.server import ReplyCounts
from peagle_cli.engine.vllm.weave import Weaver
from peagle_cli.errors import PeagleError
from peagle_cli.trace.events import Changed, Event, Failed, Finished, FinishReason, Method, Started

_GRACE_S = 5.0
"""How long the tap may be behind the stream before the stream is read alone."""

_REASONS: dict[str, FinishReason] = {"length": "length", "abort": "cancelled"}
"""What servers call the ends that are not by the model's own will."""

_End = Ended | Interrupted | PeagleError


class Backends(Protocol):
    """Where lanes get their servers."""

    def backend(self, method: Method, wanted: Callable[[], bool]) -> Backend:
        """The server for a method, started if need be. Raises `PeagleError` when it cannot be, `UnwantedError` when it
        is not `wanted` any more before it answers."""
        ...

    def remark(self, backend: Backend) -> str:
        """What should be said of a reply that has come to its end; "" for nothing."""
        ...

    def why_gone(self, backend: Backend, error: PeagleError) -> PeagleError:
        """What lies behind an error of a server that has broken off."""
        ...


class LaneRun:
    """A lane that runs. `events` is read by one thread; commands may be given by another, and act on the server at
    once: the events tell of them where they show."""

    def __init__(self, setting: LaneSetting, request: Request, backends: Backends, context: int, salt: str) -> None:
        self.name = setting.name
        self.method: Method = setting.method
        self.depth = setting.depth
        self.prompt_ids: tuple[int, ...] = ()
        self.reused = 0
        self._request = request
        self._backends = backends
        self._context = context
        self._salt = salt
        self._begun = False  # `Started` has been told
        self._maker: BatchMaker | None = None
        self._said: list[int] = []
        self._accepted: list[int] = []  # by the steps that have drafted
        self._lost = 0  # steps that did not reach us
        self._remark = ""  # what the latest server has to say of it
        self._silent = False  # the tap has told nothing of what the stream brought
        self._blank = 0  # steps whose drafts are all token 0: what vLLM puts where its drafter cannot draft
        self._shown_depth = setting.depth
        self._lock = threading.Lock()  # of what follows
        self._attempt: Attempt | None = None
        self._held = False
        self._stopped = False
        self._next_method: Method | None = None

    def set_depth(self, depth: int) -> None:
        """Draft so many tokens from the next step on."""
        with self._lock:
            self.depth = depth
            self._steer()

    def set_method(self, method: Method) -> None:
        """Go on by another method: on another server, with what has been said as its context."""
        with self._lock:
            self._next_method = None if method == self.method else method
            if self._attempt and self._next_method:
                self._attempt.interrupt()

    def hold(self, held: bool) -> None:
        """Take no further step, or go on."""
        with self._lock:
            self._held = held
            self._steer()

    def step(self) -> None:
        """While held, take one step."""
        with self._lock:
            self._steer(steps=1)

    def stop(self) -> None:
        """End the reply."""
        with self._lock:
            self._stopped = True
            if self._attempt:
                self._attempt.interrupt()

    def events(self, started: "Callable[[LaneRun], Started]") -> Generator[Event]:
        """The lane's events; `started` makes the first. Raises what the server refuses before it."""
        while True:
            end = yield from self._served(started)
            with self._lock:
                method, self._next_method = self._next_method, None
            if method is None or self._stopped or not isinstance(end, Interrupted):
                break
            if self._begun:
                yield Changed(self.name, "method", self.method, method)
            self.method = method
        if not self._begun:
            if isinstance(end, PeagleError):
                raise end
            yield started(self)
        if isinstance(end, PeagleError):
            yield Failed(self.name, end.message, end.hint)
        else:
            yield Finished(self.name, self._reason(end), self._note)

    def _served(self, started: "Callable[[LaneRun], Started]") -> Generator[Event, None, _End]:
        """The events of the reply, or its rest, by the method that is set now."""
        try:
            backend = self._backends.backend(self.method, lambda: not self._leaves)
        except UnwantedError:
            return Interrupted()
        except PeagleError as error:
            return error
        end = yield from self._attempted(Attempt(backend), started)
        if isinstance(end, PeagleError):
            return self._backends.why_gone(backend, end)
        counts = end.counts if isinstance(end, Ended) else None
        self._remark = _told(counts, self._accepted) if counts else self._backends.remark(backend)
        return end

    def _attempted(self, attempt: Attempt, started: "Callable[[LaneRun], Started]") -> Generator[Event, None, _End]:
        """The events of one request, from its beginning to its end or interruption."""
        with self._lock:
            self._attempt = attempt
            if self._held or self._drafts != attempt.backend.depth:
                self._steer()
            if self._leaves:
                attempt.interrupt()
        try:
            if self._maker is None:
                attempt.begin(*chat(attempt.backend, self._request, self._salt))
            else:
                context = (*self.prompt_ids, *self._said)
                attempt.begin(*rest(attempt.backend, self._request, context, len(self._said), self._salt))
            return (yield from self._follow(attempt, started))
        finally:
            with self._lock:
                self._attempt = None
            attempt.end()

    def _follow(self, attempt: Attempt, started: "Callable[[LaneRun], Started]") -> Generator[Event, None, _End]:
        weaver: Weaver | None = None
        early: list[object] = []  # what the tap told before the stream began
        end: _End | None = None
        while end is None or (weaver is not None and isinstance(end, Ended) and not weaver.complete):
            due = weaver is not None and (weaver.waits or not self._begun or end is not None)
            item = _next(attempt, _GRACE_S if due else None)
            match item:
                case Began(prompt_ids=ids):
                    weaver = self._weaver(attempt, ids)
                    for told in early:
                        self._take(weaver, told)
                case Ended() | Interrupted() | PeagleError():
                    end = item
                case None:
                    assert weaver is not None
                    self._silent = self._silent or weaver.waits
                    weaver.give_up()
                case _ if weaver is None:
                    early.append(item)
                case _:
                    self._take(weaver, item)
            over = end is not None and not isinstance(end, PeagleError)
            if not self._begun and (over or (weaver is not None and weaver.prefilled is not None)):
                self._begun = True
                self.reused = max(0, len(self.prompt_ids) - (weaver.prefilled or 0)) if weaver else 0
                yield started(self)
            if self._begun and weaver is not None:
                yield from self._shown(weaver)
        return end

    def _weaver(self, attempt: Attempt, prompt_ids: tuple[int, ...]) -> Weaver:
        backend = attempt.backend
        if self._maker is None:
            self.prompt_ids = prompt_ids
            texts = backend.texts() if backend.texts else None
            self._maker = BatchMaker(self.name, len(prompt_ids), texts)
        self._maker.method = self.method
        return Weaver(
            self._maker,
            tapped=backend.link is not None,
            depth=backend.depth,
            wants_opinions=bool(self._request.candidates) and not self._said,
            began_s=attempt.began_s,
        )

    def _take(self, weaver: Weaver, item: object) -> None:
        match item:
            case Piece():
                weaver.streamed(item)
            case Lost(steps=steps):
                self._lost += steps
            case Told():
                weaver.told(item.step, item.work)

    def _shown(self, weaver: Weaver) -> Generator[Event]:
        """The batches that have become certain, and before one of another depth, that it has changed."""
        for batch in weaver.batches():
            if batch.method != "none" and batch.depth != self._shown_depth and not batch.prefill:
                yield Changed(self.name, "depth", self._shown_depth, batch.depth)
                self._shown_depth = batch.depth
            self._said += [token.id for token in batch.tokens]
            if batch.drafted:
                self._accepted.append(batch.accepted)
            self._blank += len(batch.drafted) > 1 and not any(token.id for token in batch.drafted)
            yield batch

    def _steer(self, steps: int = 0) -> None:
        if self._attempt:
            self._attempt.steer(self._drafts, self._held, steps)

    @property
    def _leaves(self) -> bool:
        """Whether the server that serves it now, or is to, is not the one that is wanted."""
        return self._stopped or self._next_method is not None

    @property
    def _drafts(self) -> int:
        return 0 if self.method == "none" else self.depth

    def _reason(self, end: "Ended | Interrupted") -> FinishReason:
        if isinstance(end, Interrupted):
            return "cancelled"
        full = len(self.prompt_ids) + len(self._said) >= self._context
        return "context" if end.reason == "length" and full else _REASONS.get(end.reason, "stop")

    @property
    def _note(self) -> str:
        notes = []
        if self._lost:
            notes.append(f"{self._lost} steps did not reach peagle in time: what was drafted in them is unknown.")
        if self._silent:
            notes.append("The server's tap fell silent: what was drafted meanwhile is unknown.")
        if self._blank:
            notes.append(f"In {self._blank} steps the drafter was out of its context: nothing was drafted.")
        return " ".join(notes) or self._remark


def _told(counts: ReplyCounts, shown: Sequence[int]) -> str:
    """A server's own counts of a reply, and whether they are those of the steps that were `shown` as they arrived."""
    agrees = ""
    if counts.accepted_by:
        # A limit can cut what the last step put out, not what it accepted.
        alike = len(counts.accepted_by) == len(shown) and counts.accepted_by[:-1] == tuple(shown[:-1])
        agrees = ", step by step as shown" if alike else ", in other steps than shown: some arrived together"
    return (
        f"The server counted for this reply: {counts.drafts} drafts, {counts.draft_tokens} tokens drafted, "
        f"{counts.accepted_tokens} accepted{agrees}."
    )


def _next(attempt: Attempt, timeout_s: float | None) -> object:
    """What comes next; None when nothing has come in time."""
    try:
        return attempt.inbox.get(timeout=timeout_s)
    except Empty:
        return None
