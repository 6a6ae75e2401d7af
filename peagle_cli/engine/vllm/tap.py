"""The tap: a scheduler for vLLM that tells every step it takes, and obeys orders between two steps.

Named to a server by `--scheduler-cls peagle_cli.engine.vllm.tap.TapScheduler` (`AsyncTapScheduler` together with
`--async-scheduling`, where drafts are not known to the scheduler and orders are refused). `PEAGLE_TAP` says where it
listens: `ipc:///a/folder/of/your/own`, or `tcp://address:port`, which opens it to whoever reaches that address.

It adds nothing to what is scheduled, so that replies are those of a server without it. Nobody who listens: it costs two
reads of the clock per step. Somebody slow: steps are dropped for them, never waited for. A mistake in here, such as an
unforeseen change in vLLM, turns the tap off and leaves the server running.
"""

import logging
import os
import stat
import threading
import time
from collections import deque
from pathlib import Path
from typing import Any

import zmq
from vllm import __version__ as vllm_version
from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.core.sched.scheduler import Scheduler

from peagle_cli.engine.vllm import wire
from peagle_cli.engine.vllm.greeting import hello
from peagle_cli.trace.events import UNKNOWN_ID

MADE_FOR = "0.32"
KEPT_STEPS = 10_000
"""Steps that wait for a reader who is behind; what comes after is dropped for them."""

MAX_STEERED = 1_000

log = logging.getLogger("vllm.peagle")

_NEEDED = ("schedule", "add_request", "update_from_output", "update_draft_token_ids")


class TapError(Exception):
    """The tap cannot be used; the server does not start. Its text is for people."""


def _check_vllm() -> None:
    missing = [name for name in _NEEDED if not hasattr(Scheduler, name)]
    if missing:
        raise TapError(
            f"peagle's tap was made for vLLM {MADE_FOR}, and this is {vllm_version}: its scheduler has no {missing[0]}."
        )
    if not vllm_version.startswith(MADE_FOR):
        log.warning("peagle's tap was made for vLLM %s, and this is %s.", MADE_FOR, vllm_version)


_check_vllm()


class Steered:
    """How one request is to be served: as `wire.Steer` said last."""

    def __init__(self) -> None:
        self.depth: int | None = None
        self.held = False
        self.steps = 0

    @property
    def waits(self) -> bool:
        """Whether it may take no step now."""
        return self.held and self.steps == 0


class Seen:
    """What the tap remembers of a request between its steps; times are seconds."""

    def __init__(self) -> None:
        self.arrived = time.monotonic()
        self.held_s = 0.0
        self.held_since: float | None = None
        self.draft_s: float | None = None
        self.steered: Steered | None = None

    def hold(self, now: float) -> None:
        """It takes no step now."""
        if self.held_since is None:
            self.held_since = now

    def release(self, now: float) -> None:
        """It goes on."""
        if self.held_since is not None:
            self.held_s += now - self.held_since
            self.held_since = None

    def clock_s(self, now: float) -> float:
        """Seconds since it arrived, without those in which it was held."""
        return now - self.arrived - self.held_s


class Sockets:
    """The two sockets. Control has a thread of its own, which only queues what it is told: `orders`."""

    def __init__(self, address: str, rank: int, hello: wire.Hello) -> None:
        self.orders: deque[wire.Steer] = deque(maxlen=MAX_STEERED)
        self._hello = hello
        self._context = zmq.Context()
        self._events = self._context.socket(zmq.XPUB)
        self._events.setsockopt(zmq.SNDHWM, KEPT_STEPS)
        self._events.setsockopt(zmq.LINGER, 0)
        self._control = self._context.socket(zmq.REP)
        self._control.setsockopt(zmq.LINGER, 0)
        _prepare_folder(address)
        for socket, where in (
            (self._events, wire.events_address(address, rank)),
            (self._control, wire.control_address(address, rank)),
        ):
            try:
                socket.bind(where)
            except (zmq.ZMQError, ValueError) as error:
                raise TapError(f"peagle's tap cannot listen at {where}: {error}.") from error
        self._readers = 0
        threading.Thread(target=self._serve, name="peagle tap", daemon=True).start()

    @property
    def heard(self) -> bool:
        """Whether anybody listens. Called by one thread only, that of the engine."""
        while self._events.poll(0):
            self._readers += 1 if self._events.recv()[:1] == b"\1" else -1
        return self._readers > 0

    def tell(self, step: wire.Step) -> None:
        """Send to all who listen, without waiting for any of them."""
        self._events.send(wire.encode(step), zmq.NOBLOCK)

    def _serve(self) -> None:
        while True:
            try:
                self._control.send(wire.encode(self._answer(self._control.recv())))
            except zmq.ZMQError:
                log.exception("peagle's tap takes no orders any more")
                return

    def _answer(self, data: bytes) -> wire.Answer:
        try:
            order = wire.decode_order(data)
        except ValueError as error:  # msgspec's errors are ValueErrors
            return wire.Refused(f"The order is not understood: {error}.")
        if isinstance(order, wire.Greet):
            return self._hello
        if not self._hello.steers:
            return wire.Refused("This server schedules asynchronously: its depth is fixed, and it cannot be held.")
        self.orders.append(order)
        return wire.Done()


class _Tapped:
    """The tap's part of a scheduler; stands before one of vLLM's in the order of inheritance."""

    asynchronous = False

    # What the scheduler behind it has.
    vllm_config: Any
    parallel_config: Any
    num_spec_tokens: int
    dynamic_sd_lookup: list[int]
    requests: dict[str, Any]
    running: list[Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        greeting = hello(self.vllm_config, steers=not self.asynchronous)
        address = os.environ.get("PEAGLE_TAP")
        if not address:
            raise TapError("PEAGLE_TAP does not say where peagle's tap is to listen; `peagle tap` tells what to set.")
        self._sockets = Sockets(address, self.parallel_config.data_parallel_index, greeting)
        self._drafts_follow = bool(self.num_spec_tokens) and not self.asynchronous
        self._deepest = self.num_spec_tokens
        # With a schedule by batch size, an EAGLE-3 drafter can spare itself the passes that nobody wants. P-EAGLE
        # drafts in one pass, and cannot draft fewer tokens by that way (vLLM issue 45695).
        self._spares = not greeting.parallel and self.dynamic_sd_lookup is not None
        self._steered: dict[str, Steered] = {}
        self._seen: dict[str, Seen] = {}
        self._sequence = 0
        self._began = 0.0
        self._untold: wire.Step | None = None
        self._off = False
        log.info("peagle's tap listens at %s", address)

    def add_request(self, request: Any) -> None:
        """A request arrives."""
        super().add_request(request)  # type: ignore[misc]
        self._seen[request.request_id] = Seen()

    def schedule(self, *args: Any, **kwargs: Any) -> Any:
        """A step begins: orders take effect now."""
        if self._off:
            return super().schedule(*args, **kwargs)  # type: ignore[misc]
        held: list[Any] = []
        try:
            if self._untold is not None:  # nothing was drafted behind it after all
                self._tell(self._untold, time.monotonic())
            self._obey()
            held = self._hold()
            self._cut_drafts()
        except Exception:
            self._turn_off()
        try:
            return super().schedule(*args, **kwargs)  # type: ignore[misc]
        finally:
            self.running.extend(held)
            self._began = time.monotonic()

    def update_from_output(self, scheduler_output: Any, model_runner_output: Any) -> Any:
        """The model has run: what came of it."""
        if self._off:
            return super().update_from_output(scheduler_output, model_runner_output)  # type: ignore[misc]
        before: dict[str, tuple[int, tuple[int, ...]]] = {}
        heard = False
        try:
            heard = self._sockets.heard
            if heard:
                before = self._before(scheduler_output, model_runner_output)
        except Exception:
            self._turn_off()
        outputs = super().update_from_output(scheduler_output, model_runner_output)  # type: ignore[misc]
        try:
            now = time.monotonic()
            if heard:
                step = self._step(scheduler_output, before, outputs, now)
                if self._drafts_follow:
                    self._untold = step
                else:
                    self._tell(step, now)
            self._forget()
        except Exception:
            self._turn_off()
        return outputs

    def update_draft_token_ids(self, draft_token_ids: Any) -> None:
        """The drafts for the next step are there."""
        super().update_draft_token_ids(draft_token_ids)  # type: ignore[misc]
        if self._off:
            return
        try:
            now = time.monotonic()
            drafting = getattr(draft_token_ids, wire.DRAFT_S, None)
            for request_id in draft_token_ids.req_ids:
                if seen := self._seen.get(request_id):
                    seen.draft_s = drafting
            if self._untold is not None:
                self._tell(self._untold, now, drafting or 0.0)
        except Exception:
            self._turn_off()

    def _obey(self) -> None:
        while self._sockets.orders:
            order = self._sockets.orders.popleft()
            if len(self._steered) >= MAX_STEERED:
                self._steered.pop(next(iter(self._steered)))
            steered = self._steered.setdefault(order.key, Steered())
            steered.depth, steered.held = order.depth, order.held
            steered.steps = steered.steps + order.steps if order.held else 0
        if self._steered:
            for request_id, seen in self._seen.items():
                if seen.steered is None:
                    seen.steered = next((s for key, s in self._steered.items() if key in request_id), None)

    def _hold(self) -> list[Any]:
        """Take the requests that must wait out of the running ones; returns them."""
        if not any(steered.held for steered in self._steered.values()):
            for remembered in self._seen.values():
                remembered.release(time.monotonic())
            return []
        now = time.monotonic()
        held, running = [], []
        for request in self.running:
            seen = self._seen.get(request.request_id)
            if seen and seen.steered and seen.steered.waits:
                seen.hold(now)
                held.append(request)
                continue
            if seen:
                seen.release(now)
                if seen.steered and seen.steered.held:
                    seen.steered.steps -= 1
            running.append(request)
        self.running = running
        return held

    def _cut_drafts(self) -> None:
        """Keep as many of the drafts at hand as are wanted, and have as many made as anybody wants."""
        if self.asynchronous or not self.num_spec_tokens:
            return
        for request in self.running:
            wanted = self._wanted(request.request_id)
            if len(request.spec_token_ids) > wanted:
                request.spec_token_ids = request.spec_token_ids[:wanted]
        if self._spares:
            deepest = max((self._wanted(request_id) for request_id in self._seen), default=self.num_spec_tokens)
            deepest = max(1, deepest)  # a drafter that skips a step misses what was said in it
            if deepest != self._deepest:
                self._deepest = deepest
                self.dynamic_sd_lookup[:] = [deepest] * len(self.dynamic_sd_lookup)

    def _wanted(self, request_id: str) -> int:
        seen = self._seen.get(request_id)
        depth = seen.steered.depth if seen and seen.steered else None
        return self.num_spec_tokens if depth is None else min(depth, self.num_spec_tokens)

    def _before(self, scheduled: Any, output: Any) -> dict[str, tuple[int, tuple[int, ...]]]:
        """Of each request in the step, the length of its reply and what was sampled: both change in a moment."""
        found = {}
        for request_id in scheduled.num_scheduled_tokens:
            request = self.requests.get(request_id)
            if request is None or request.is_finished():
                continue
            index = output.req_id_to_index[request_id]
            sampled = output.sampled_token_ids[index] if output.sampled_token_ids else ()
            found[request_id] = request.num_output_tokens, tuple(int(token) for token in sampled)
        return found

    def _step(
        self, scheduled: Any, before: dict[str, tuple[int, tuple[int, ...]]], outputs: Any, now: float
    ) -> wire.Step:
        put_out = {out.request_id: out for core in outputs.values() for out in core.outputs}
        work = []
        for request_id, (position, sampled) in before.items():
            seen, out = self._seen.get(request_id), put_out.get(request_id)
            if seen is None:
                continue
            drafted = tuple(scheduled.scheduled_spec_decode_tokens.get(request_id) or ())
            context = scheduled.num_scheduled_tokens[request_id] - len(drafted)
            if not self.asynchronous and UNKNOWN_ID in drafted:
                drafted = ()  # vLLM's padding of a short prompt to the shape of a drafting step
            accepted = max(0, len(sampled) - 1)
            if self.asynchronous:
                drafted = (*sampled[:accepted], *drafted[accepted:])
            work.append(
                wire.Work(
                    request=request_id,
                    position=position,
                    prefilled=context if context > 1 or position == 0 else 0,
                    depth=self._wanted(request_id),
                    drafted=drafted,
                    accepted=accepted,
                    sampled=sampled,
                    emitted=len(out.new_token_ids) if out else 0,
                    draft_s=seen.draft_s if drafted else 0.0,
                    clock_s=seen.clock_s(now),
                    finished=out is not None and out.finish_reason is not None,
                )
            )
        return wire.Step(0, 0.0, len(scheduled.num_scheduled_tokens), tuple(work))

    def _tell(self, step: wire.Step, now: float, drafting: float = 0.0) -> None:
        """Send a step whose end is `now`, after so many seconds of drafting for the next one."""
        self._untold = None
        verify_s = max(0.0, now - self._began - drafting)
        self._sockets.tell(wire.Step(self._sequence, verify_s, step.batch, step.work))
        self._sequence += 1

    def _forget(self) -> None:
        """Drop what is known of requests that have ended, and the orders for them."""
        if len(self._seen) <= len(self.requests):
            return
        for request_id in [request_id for request_id in self._seen if request_id not in self.requests]:
            steered = self._seen.pop(request_id).steered
            if steered is not None:
                self._steered = {key: other for key, other in self._steered.items() if other is not steered}

    def _turn_off(self) -> None:
        log.exception("peagle's tap met what it did not foresee in vLLM %s, and is off from now on", vllm_version)
        self._off = True


class TapScheduler(_Tapped, Scheduler):
    """vLLM's scheduler, tapped."""


class AsyncTapScheduler(_Tapped, AsyncScheduler):
    """vLLM's asynchronous scheduler, tapped: drafts stay on the GPU, so that rejected ones are unknown and the depth is
    that of the start."""

    asynchronous = True


def _prepare_folder(address: str) -> None:
    """For sockets in a folder: one that belongs to this user, and that nobody else can enter."""
    if not address.startswith("ipc://"):
        return
    folder = Path(address.removeprefix("ipc://"))
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
    except OSError as error:
        raise TapError(f"peagle's tap cannot use the folder {folder}: {error.strerror}.") from error
    if status.st_uid != os.getuid() or stat.S_IMODE(status.st_mode) & 0o077:
        raise TapError(f"peagle's tap does not use {folder}: others can enter it. `chmod 700` it, or choose another.")
