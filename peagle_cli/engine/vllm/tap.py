"""The tap: a scheduler for vLLM that tells every step it takes, and obeys orders between two steps.

Named to a server by `--scheduler-cls peagle_cli.engine.vllm.tap.TapScheduler` (`AsyncTapScheduler` together with
`--async-scheduling`, where drafts are not known to the scheduler and orders are refused). `PEAGLE_TAP` says where it
listens: `ipc:///a/folder/of/your/own`, or `tcp://address:port`, which opens it to whoever reaches that address.

It adds nothing to what is scheduled: replies are those of a server without it. Without a listener nothing is put
together; for a slow one, steps are dropped and never waited for. A mistake in here, such as an unforeseen change in
vLLM, turns the tap off and leaves the server running.
"""

import logging
import os
import time
from collections import deque
from typing import Any

from vllm import __version__ as vllm_version
from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.core.sched.scheduler import Scheduler

from peagle_cli.engine.vllm import wire
from peagle_cli.engine.vllm.greeting import hello
from peagle_cli.engine.vllm.sockets import MAX_STEERED, Sockets, TapError
from peagle_cli.trace.events import UNKNOWN_ID

log = logging.getLogger("vllm.peagle")

_NEEDED = ("schedule", "add_request", "update_from_output", "update_draft_token_ids")


def _check_vllm() -> None:
    missing = [name for name in _NEEDED if not hasattr(Scheduler, name)]
    if missing:
        raise TapError(
            f"peagle's tap was made for vLLM {wire.MADE_FOR}, and this is {vllm_version}: its scheduler has no "
            f"{missing[0]}."
        )


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


class Untold:
    """A step that has been taken and not been told of: when it began and ended, less what it drafted for the next, on
    the server's clock; the number of requests in it; what it did for them."""

    def __init__(self, began: float, ended: float, batch: int) -> None:
        self.began = began
        self.ended = ended
        self.batch = batch
        self.work: tuple[wire.Work, ...] = ()


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
        self._begins: deque[float] = deque()  # of the steps in flight, oldest first: several in a pipeline
        self._ended = 0.0
        self._untold: Untold | None = None
        self._holding = self._cutting = False  # as of the latest step
        self._off = False
        log.info("peagle's tap listens at %s", address)

    def add_request(self, request: Any) -> None:
        """A request arrives."""
        super().add_request(request)  # type: ignore[misc]
        if not self._off:
            self._seen[request.request_id] = Seen()

    def schedule(self, *args: Any, **kwargs: Any) -> Any:
        """A step begins: orders take effect now."""
        if self._off:
            return super().schedule(*args, **kwargs)  # type: ignore[misc]
        held: list[Any] = []
        try:
            if self._untold is not None:  # nothing was drafted behind it after all
                self._tell(self._untold)
            self._obey()
            held = self._hold()
            self._cut_drafts()
        except Exception:
            self._turn_off()
        try:
            scheduled = super().schedule(*args, **kwargs)  # type: ignore[misc]
        finally:
            self.running.extend(held)
        if scheduled.total_num_scheduled_tokens:
            self._begins.append(time.monotonic())
        return scheduled

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
            began = self._begins.popleft() if scheduler_output.total_num_scheduled_tokens and self._begins else now
            # A step that waited for the one before it in a pipeline has its own time only from there.
            untold = Untold(max(began, self._ended), now, len(scheduler_output.num_scheduled_tokens))
            self._ended = now
            if heard:
                untold.work = self._work(scheduler_output, before, outputs, now)
                if self._drafts_follow:
                    self._untold = untold
                else:
                    self._tell(untold)
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
                self._untold.ended = now - (drafting or 0.0)
                self._tell(self._untold)
            self._ended = now
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
        now = time.monotonic()
        if not any(steered.held for steered in self._steered.values()):
            if self._holding:
                self._holding = False
                for remembered in self._seen.values():
                    remembered.release(now)
            return []
        self._holding = True
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
        if self.asynchronous or not self.num_spec_tokens or not (self._steered or self._cutting):
            return
        self._cutting = bool(self._steered)  # and once more when nobody asks for another depth any longer
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
            found[request_id] = request.num_output_tokens, tuple(map(int, sampled))
        return found

    def _work(
        self, scheduled: Any, before: dict[str, tuple[int, tuple[int, ...]]], outputs: Any, now: float
    ) -> tuple[wire.Work, ...]:
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
                # Where a grammar makes the scheduler look at drafts, those it has ruled out come last, as padding.
                drafted = drafted[: len(drafted) - (scheduled.num_invalid_spec_tokens or {}).get(request_id, 0)]
                # At times vLLM 0.32 has ids for the others, too; that they are those that were verified is not known.
                drafted = (*sampled[:accepted], *(UNKNOWN_ID for _ in drafted[accepted:]))
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
        return tuple(work)

    def _tell(self, untold: "Untold") -> None:
        self._untold = None
        verify_s = max(0.0, untold.ended - untold.began)
        self._sockets.tell(wire.Step(self._sequence, verify_s, untold.batch, untold.work))
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
