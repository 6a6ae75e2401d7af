"""Stands between peagle and a server it started, so that the one never outlives the other.

`python -m peagle_cli.engine.vllm.guard LOG FOLDER COMMAND...` runs the command until it ends, or until standard input
closes: then peagle is gone, or wants the server gone. Whatever the server prints goes to the log, as far as there is
room: a full disk is no reason to stop. In the end nothing that the server started is left, and FOLDER, its own for as
long as it runs, is removed. Knows the standard library only.
"""

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import BinaryIO

PATIENCE_S = 3.0
"""For the server to end by itself."""

MAX_LOG_BYTES = 20_000_000

_PR_SET_PDEATHSIG = 1


def main() -> int:
    """Guard the command; returns its exit code, negative for a signal."""
    log, folder, command = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]
    server = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,  # a group of its own, to be ended as a whole
        preexec_fn=_die_with_parent,  # noqa: PLW1509  (the guard has no other thread yet)
    )
    assert server.stdout is not None
    threading.Thread(target=_await_parent, args=(server,), daemon=True).start()
    writer = threading.Thread(target=_keep_log, args=(server.stdout, log), daemon=True)
    writer.start()
    code = server.wait()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(server.pid, signal.SIGKILL)
    writer.join(PATIENCE_S)
    shutil.rmtree(folder, ignore_errors=True)
    return code


def _die_with_parent() -> None:
    """In the server, before it runs: have the kernel end it when the guard is killed. Linux only."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _await_parent(server: "subprocess.Popen[bytes]") -> None:
    """End the server when standard input closes: in order, or after a while not in order."""
    while os.read(0, 1024):
        pass
    server.terminate()
    try:
        server.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        server.kill()


def _keep_log(output: BinaryIO, path: Path) -> None:
    written = 0
    with contextlib.ExitStack() as stack:
        file: BinaryIO | None = None
        with contextlib.suppress(OSError):
            file = stack.enter_context(path.open("ab", buffering=0))
        while data := output.read1(65536):  # type: ignore[attr-defined]  # a BufferedReader, which typeshed does not say
            written += len(data)
            if file is not None and written <= MAX_LOG_BYTES:
                with contextlib.suppress(OSError):
                    file.write(data)


if __name__ == "__main__":
    sys.exit(main() & 0xFF)
