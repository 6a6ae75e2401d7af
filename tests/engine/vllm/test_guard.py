"""A server never outlives peagle, nor does what it started; its log survives whatever happens to it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SERVER = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print("started", os.getpid(), child.pid, flush=True)
{rest}
"""


def guard(log: Path, rest: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "peagle_cli.engine.vllm.guard",
            str(log),
            str(log.parent / "folder"),
            sys.executable,
            "-c",
            SERVER.format(rest=rest),
        ],
        stdin=subprocess.PIPE,
        start_new_session=True,
    )


def started(log: Path) -> list[int]:
    """The processes of the server, once they run."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if log.exists() and (line := log.read_text()).startswith("started") and line.endswith("\n"):
            return [int(pid) for pid in line.split()[1:]]
        time.sleep(0.02)
    raise AssertionError("the server did not start")


def gone(pid: int) -> bool:
    """Whether a process has ended, zombies included."""
    status = Path(f"/proc/{pid}/stat")
    try:
        os.kill(pid, 0)
        return status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):  # also where it goes while it is read
        return True


def all_gone(pids: list[int]) -> bool:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if all(map(gone, pids)):
            return True
        time.sleep(0.05)
    return False


def test_the_server_ends_with_whoever_started_it(tmp_path: Path) -> None:
    (tmp_path / "folder" / "path").mkdir(parents=True)
    process = guard(tmp_path / "log", "time.sleep(600)")
    pids = started(tmp_path / "log")
    assert process.stdin is not None
    process.stdin.close()  # what a kill -9 of peagle comes to
    assert all_gone(pids)
    process.wait(30)
    assert not (tmp_path / "folder").exists()


def test_what_a_killed_server_started_ends_too(tmp_path: Path) -> None:
    process = guard(tmp_path / "log", "time.sleep(600)")
    pids = started(tmp_path / "log")
    os.kill(pids[0], signal.SIGKILL)
    assert all_gone(pids)
    assert process.wait(30) == 256 - signal.SIGKILL


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's help is Linux's")
def test_a_killed_guard_takes_the_server_along(tmp_path: Path) -> None:
    process = guard(tmp_path / "log", "time.sleep(600)")
    pids = started(tmp_path / "log")
    process.kill()
    process.wait()
    assert all_gone(pids[:1])
    os.kill(pids[1], signal.SIGKILL)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full disk to write to")
def test_a_full_disk_stops_nothing() -> None:
    process = guard(Path("/dev/full"), "sys.exit(7)")
    assert process.wait(30) == 7
