"""Where the tap listens: the sockets of `wire.py`, inside vLLM."""

import logging
import os
import stat
import threading
from collections import deque
from pathlib import Path

import zmq

from peagle_cli.engine.vllm import wire

KEPT_STEPS = 10_000
"""Steps that wait for a reader who is behind; what comes after is dropped for them."""

MAX_STEERED = 1_000
"""Requests for which orders are kept, and orders that wait to be obeyed."""

log = logging.getLogger("vllm.peagle")


class TapError(Exception):
    """The tap cannot be used; the server does not start. Its text is for people."""


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
