"""The line to a server's tap: what it sits in, orders to it, and its steps, sorted by request."""

import contextlib
import threading
from queue import SimpleQueue
from typing import Any

import msgspec
import zmq

from peagle_cli.engine.vllm import wire
from peagle_cli.errors import PeagleError

_ANSWER_S = 5.0
_POLL_MS = 200


class Told(msgspec.Struct, frozen=True):
    """A step of the server, and what it did for the request that is listened to."""

    step: wire.Step
    work: wire.Work


class Lost(msgspec.Struct, frozen=True):
    """So many steps of the server did not reach us: we were too slow for it."""

    steps: int


class TapLink:
    """A tap at `address` (see `wire.events_address`). All methods may be called from any thread."""

    def __init__(self, address: str, hello: wire.Hello, context: "zmq.Context[Any]") -> None:
        self.address = address
        self.hello = hello
        self._context = context
        self._controls = [_Control(context, address, rank) for rank in range(hello.ranks)]
        self._listeners: dict[str, SimpleQueue[Any]] = {}
        self._closed = threading.Event()
        self._subscribed = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="vLLM's steps", daemon=True)
        self._thread.start()
        self._subscribed.wait(_ANSWER_S)

    @classmethod
    def connect(cls, address: str, patience_s: float = _ANSWER_S) -> "TapLink | None":
        """The tap at `address`; None when nobody answers there.

        Raises `PeagleError` for one of another version of peagle.
        """
        context: zmq.Context[Any] = zmq.Context()
        answer = _Control(context, address, 0, patience_s).ask(wire.Greet())
        if not isinstance(answer, wire.Hello):
            context.destroy(linger=0)
            return None
        if answer.protocol != wire.PROTOCOL:
            context.destroy(linger=0)
            raise PeagleError(
                f"The server's tap is that of peagle {answer.peagle}, and speaks another protocol than this one.",
                "Install the same version of peagle on both sides.",
            )
        return cls(address, answer, context)

    def steer(self, order: wire.Steer) -> None:
        """Have requests served so. Raises `PeagleError` when the tap does not answer, or refuses."""
        for control in self._controls:
            match control.ask(order):
                case wire.Done():
                    pass
                case wire.Refused(reason=reason):
                    raise PeagleError(reason)
                case _:
                    raise PeagleError("The server's tap does not answer.", "The server may be gone.")

    def listen(self, key: str, queue: "SimpleQueue[Any]") -> None:
        """Put `Told` and `Lost` of the request whose id contains `key` into `queue`."""
        self._listeners[key] = queue

    def forget(self, key: str) -> None:
        """Listen to the request no longer."""
        self._listeners.pop(key, None)

    def close(self) -> None:
        """Hang up."""
        self._closed.set()
        self._thread.join(5)
        for control in self._controls:
            control.close()
        self._context.destroy(linger=0)

    def _listen(self) -> None:
        sockets = {}  # each with the number of the latest step that it brought
        for rank in range(self.hello.ranks):
            reader = self._context.socket(zmq.SUB)
            reader.setsockopt(zmq.RCVHWM, 10_000)
            reader.setsockopt(zmq.SUBSCRIBE, b"")
            reader.connect(wire.events_address(self.address, rank))
            sockets[reader] = -1
        poller = zmq.Poller()
        for reader in sockets:
            poller.register(reader, zmq.POLLIN)
        self._subscribed.set()
        while not self._closed.is_set():
            for reader, _ in poller.poll(_POLL_MS):
                with contextlib.suppress(msgspec.MsgspecError):
                    step = wire.decode_step(reader.recv())
                    self._pass_on(step, sockets[reader])
                    sockets[reader] = step.sequence
        for reader in sockets:
            reader.close()

    def _pass_on(self, step: wire.Step, last: int) -> None:
        missed = step.sequence - last - 1 if last >= 0 else 0
        for key, queue in list(self._listeners.items()):
            if missed > 0:
                queue.put(Lost(missed))
            for work in step.work:
                if key in work.request:
                    queue.put(Told(step, work))


class _Control:
    """A control socket: one order at a time."""

    def __init__(self, context: "zmq.Context[Any]", address: str, rank: int, patience_s: float = _ANSWER_S) -> None:
        self._socket = context.socket(zmq.REQ)
        self._socket.setsockopt(zmq.REQ_RELAXED, 1)  # an order that got no answer does not block the next
        self._socket.setsockopt(zmq.REQ_CORRELATE, 1)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.connect(wire.control_address(address, rank))
        self._patience_ms = int(patience_s * 1000)
        self._lock = threading.Lock()

    def ask(self, order: wire.Order) -> wire.Answer | None:
        """The answer to an order; None when there is none."""
        with self._lock:
            self._socket.send(wire.encode(order))
            if not self._socket.poll(self._patience_ms):
                return None
            with contextlib.suppress(msgspec.MsgspecError):
                return wire.decode_answer(self._socket.recv())
            return None

    def close(self) -> None:
        """Hang up."""
        with self._lock:
            self._socket.close()
