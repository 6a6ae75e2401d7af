"""Running the whole program as its users do: in a process of its own."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

PEAGLE = str(Path(sys.executable).with_name("peagle"))
PATIENCE_S = 60.0  # for what is bound to happen; nothing is measured with it


class Program:
    """`peagle` with settings and logs in a folder of the test's own; models stay where they are."""

    def __init__(self, places: Path) -> None:
        self.places = places
        self.config = places / "config" / "config.toml"
        own = {name: value for name, value in os.environ.items() if not name.startswith("PEAGLE_")}
        if cache := os.environ.get("PEAGLE_CACHE_DIR"):
            own["PEAGLE_CACHE_DIR"] = cache
        self.environment = own | {
            "PEAGLE_CONFIG_DIR": str(self.config.parent),
            "PEAGLE_DATA_DIR": str(places / "data"),
            "PEAGLE_LOG_DIR": str(places / "logs"),
        }

    def run(
        self, *arguments: str, stdin: bytes = b"", environment: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run it with pipes for its three streams, to its end."""
        done = subprocess.run(
            [PEAGLE, *arguments],
            input=stdin,
            capture_output=True,
            env=self.environment | dict(environment or {}),
            check=False,
            timeout=2 * PATIENCE_S,
        )
        return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())

    @contextmanager
    def started(self, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
        """Start it with pipes, and leave the rest to the caller."""
        process = subprocess.Popen(
            [PEAGLE, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.environment,
        )
        with process:
            try:
                yield process
            finally:
                process.kill()


def engine_of(pid: int) -> int:
    """The id of the engine process that peagle's process has started, or will."""

    def children() -> str:
        return subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False).stdout

    eventually(lambda: bool(children()))
    return int(children())


def eventually(happened: Callable[[], bool]) -> None:
    """Wait until it has; fail after a long time."""
    deadline = time.monotonic() + PATIENCE_S
    while not happened():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    """Whether the process runs; one that waits for its parent to notice its end does not."""
    status = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return status.strip()[:1] not in ("", "Z")
