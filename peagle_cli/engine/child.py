"""Starting the engine process, talking to it, ending it, and telling what became of it.

The process has a session of its own, so that Ctrl+C at the terminal reaches only peagle, and its own log file, so that
nothing it or a library writes reaches the screen.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading

from peagle_cli.engine import wire
from peagle_cli.engine.logs import log_says, new_log

THREADS = {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "2000"}
"""Idle threads yield the cores, to the screen among others; but within a step they first wait awake, for about as long
as it takes until the next product (a tenth of a millisecond), since being woken for each of a hundred products can
double a step's time. Waiting awake for longer would use up the thread's share of a busy machine, and the other thread
would then wait a whole time slice for it."""


class Child:
    """The engine process and the two pipes to it.

    `send` may be called from any thread, and so may `close`, which ends a `receive` that waits.
    """

    def __init__(self) -> None:
        self.log = new_log()
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                # -P: modules in the user's working folder must not shadow the library's
                [sys.executable, "-P", "-u", "-X", "faulthandler", "-m", "peagle_cli.engine.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
                env={**THREADS, **os.environ},
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin = self._process.stdin
        self._stdout = self._process.stdout
        self._sending = threading.Lock()
        self._receiving = threading.Lock()

    @property
    def pid(self) -> int:
        """The process's id, which is its group's too."""
        return self._process.pid

    def send(self, message: wire.ToEngine) -> None:
        """Write one message. A process that is gone gets nothing; `receive` tells."""
        with self._sending, contextlib.suppress(BrokenPipeError, ValueError):  # ValueError: closed meanwhile
            self._stdin.write(wire.encode(message))
            self._stdin.flush()

    def receive(self) -> wire.FromEngine | None:
        """Wait for the next message; None when the process is gone."""
        with self._receiving:
            line = b"" if self._stdout.closed else self._stdout.readline()
        return wire.decode_from_engine(line) if line.endswith(b"\n") else None

    def close(self) -> None:
        """End the process, and what it started, in whatever it does."""
        if self._process.poll() is None:
            if hasattr(os, "killpg"):
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self.pid, signal.SIGKILL)
            self._process.kill()
        self._process.wait()
        with self._receiving:
            self._stdout.close()
        with self._sending, contextlib.suppress(BrokenPipeError):
            self._stdin.close()

    def epitaph(self) -> str:
        """One sentence on how the process ended, once `receive` said that it is gone."""
        code = self._process.wait()
        if code == -signal.SIGKILL:
            return "The engine process was killed, by another program or by the system for want of memory."
        if code < 0:
            return f"The engine process was ended by {signal.Signals(-code).name}."
        return f"The engine process ended with exit code {code}."

    def log_says(self) -> str:
        """Where the log is and its last lines, safe to print."""
        return log_says(self.log)
