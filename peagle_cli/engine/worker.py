"""The engine process: loads the embedded engine and answers requests over its standard streams (`wire.py`).

`child.py` starts it and gives it its environment and, as standard error, its log file. Whatever else writes to
standard output here, Python or native, goes to the log. When standard input closes, the process ends at once and takes
along what it started: its parent is gone or wants it gone, and neither loading nor a step is worth finishing.
"""

import os
import signal
import threading
import traceback
from queue import SimpleQueue
from typing import BinaryIO, NoReturn

from peagle_cli.engine import wire
from peagle_cli.engine.protocol import Engine, EngineSpec, Request
from peagle_cli.errors import EXIT_RUNTIME, PeagleError


def main() -> None:
    """Serve until standard input closes or something unforeseen breaks."""
    incoming, outgoing = _take_standard_streams()
    Worker(incoming, outgoing).serve()


class Worker:
    """One engine, and a second thread that passes commands on to it while it works."""

    def __init__(self, incoming: BinaryIO, outgoing: BinaryIO) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._orders: SimpleQueue[wire.Open | wire.Run] = SimpleQueue()
        self._desk = CommandDesk()

    def serve(self) -> NoReturn:
        """Open the engine, then answer one request after the other."""
        threading.Thread(target=self._listen, name="commands", daemon=True).start()
        request_id = wire.OPENING
        engine: Engine | None = None
        try:
            while True:
                order = self._orders.get()
                request_id = order.id
                try:
                    if isinstance(order, wire.Open):
                        engine = self._open(order.spec)
                    else:
                        assert engine is not None, "requests come after the opening"
                        self._answer(engine, order.id, order.request)
                except PeagleError as error:
                    self._send(wire.Refused(order.id, error.message, error.hint, error.exit_code))
        except Exception as error:
            traceback.print_exc()
            self._send(wire.Broke(request_id, f"{type(error).__name__}: {error}"))
            os._exit(EXIT_RUNTIME)

    def _open(self, spec: EngineSpec) -> Engine:
        # Here, not above: importing torch takes seconds, and by now the other thread watches standard input.
        from peagle_cli.engine.torch.engine import TorchEngine  # noqa: PLC0415

        engine = TorchEngine.open(spec, self._send)
        self._send(engine.info)
        return engine

    def _answer(self, engine: Engine, request_id: int, request: Request) -> None:
        try:
            for event in engine.run(request):
                self._send(wire.Happened(request_id, event))
                self._desk.begin(request_id, engine)
        finally:
            self._desk.end(request_id)
        self._send(wire.Ended(request_id))

    def _listen(self) -> None:
        try:
            for line in self._incoming:
                message = wire.decode_to_engine(line)
                if isinstance(message, wire.Obey):
                    self._desk.take(message)
                else:
                    self._orders.put(message)
        except Exception:
            traceback.print_exc()
        finally:
            _end_all()

    def _send(self, message: wire.FromEngine) -> None:
        try:
            self._outgoing.write(wire.encode(message))
            self._outgoing.flush()
        except BrokenPipeError:
            _end_all()


class CommandDesk:
    """Hands each command to the request it is meant for: at once, when that has begun, or never, when it has ended.

    A request has begun with its first event; from then on the engine obeys.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()  # no request begins or ends while a command is being handed over
        self._engine: Engine | None = None
        self._running = wire.OPENING
        self._last_ended = wire.OPENING
        self._early: list[wire.Obey] = []

    def take(self, order: wire.Obey) -> None:
        """A command has arrived."""
        with self._lock:
            if order.id == self._running and self._engine is not None:
                self._engine.control(order.command)
            elif order.id > self._last_ended:
                self._early.append(order)

    def begin(self, request_id: int, engine: Engine) -> None:
        """The request obeys from now on; said again, it changes nothing."""
        with self._lock:
            if self._running == request_id:
                return
            self._running, self._engine = request_id, engine
            for order in self._early:
                if order.id == request_id:
                    engine.control(order.command)
            self._early = [order for order in self._early if order.id > request_id]

    def end(self, request_id: int) -> None:
        """The request obeys no longer."""
        with self._lock:
            self._running, self._engine = wire.OPENING, None
            self._last_ended = request_id
            self._early = [order for order in self._early if order.id > request_id]


def _take_standard_streams() -> tuple[BinaryIO, BinaryIO]:
    """The two pipes to the parent, moved away from descriptors 0 and 1, which others may use as they like."""
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    return os.fdopen(incoming, "rb"), os.fdopen(outgoing, "wb")


def _end_all() -> NoReturn:
    """End this process and those it started, such as a download; POSIX puts them in a group of their own."""
    if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(EXIT_RUNTIME)


if __name__ == "__main__":
    main()
