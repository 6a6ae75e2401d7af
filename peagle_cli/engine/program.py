"""A program of ours that runs in a process of its own, often in another Python, and is talked to line by line.

It has its own session, so that Ctrl+C at the terminal is for peagle alone, and its own log file as standard error. It
ends when its standard input does.
"""

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from queue import Empty, SimpleQueue

import msgspec

from peagle_cli.engine.logs import last_lines, log_says, new_log
from peagle_cli.errors import PeagleError

_PATIENCE_S = 10.0


class Program:
    """The process, called `name` in messages. `close` ends it. Raises `PeagleError` where it cannot be started."""

    def __init__(self, name: str, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self.name = name
        self._log = new_log()
        try:
            with self._log.open("ab") as log:
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    start_new_session=True,
                    env=environment,
                )
        except OSError as error:
            raise PeagleError(f"{name} cannot be started: {error.strerror}.", f"Try {command[0]} by hand.") from error
        self._lines: SimpleQueue[bytes | None] = SimpleQueue()
        threading.Thread(target=self._listen, name=f"lines of {name}", daemon=True).start()

    def say(self, message: object) -> None:
        """Write one line of JSON; a program that is gone gets nothing, and `hear` tells."""
        stdin = self._process.stdin
        assert stdin is not None, "a pipe"
        with contextlib.suppress(OSError):
            stdin.write(msgspec.json.encode(message) + b"\n")
            stdin.flush()

    def hear(self, limit_s: float | None = None) -> bytes:
        """Its next line. Raises `PeagleError` when it ended instead, or said nothing for `limit_s` seconds: then it is
        ended."""
        try:
            line = self._lines.get(timeout=limit_s)
        except Empty:
            self._kill()
            raise PeagleError(f"{self.name} gave no answer within {limit_s:g} s.", log_says(self._log)) from None
        if line is None:
            raise self._gone()
        return line

    def close(self) -> None:
        """End it, and what it started where it does not end by itself."""
        assert self._process.stdin is not None, "a pipe"
        with contextlib.suppress(OSError):  # of what it no longer reads
            self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_PATIENCE_S)
            return
        self._kill()

    def _kill(self) -> None:
        if hasattr(os, "killpg"):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait()

    def _listen(self) -> None:
        assert self._process.stdout is not None, "a pipe"
        with self._process.stdout as stdout:
            for line in stdout:
                if line.endswith(b"\n"):  # one that it died in the midst of says nothing
                    self._lines.put(line)
        self._lines.put(None)

    def _gone(self) -> PeagleError:
        code = self._process.wait()
        if code < 0:  # as of a build for another processor, which dies of an illegal instruction
            return PeagleError(f"{self.name} was killed by {signal.Signals(-code).name}.", log_says(self._log))
        said = last_lines(self._log)
        why = f": {said[-1]}" if said else "."
        return PeagleError(f"{self.name} ended with exit code {code}{why}", log_says(self._log))
