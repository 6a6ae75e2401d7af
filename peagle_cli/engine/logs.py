"""The log files of engine processes: each has its own, and only the latest are kept."""

import contextlib
import itertools
import os
import time
from pathlib import Path

from peagle_cli import locations
from peagle_cli.errors import PeagleError
from peagle_cli.text import printable

KEPT_LOGS = 20
LOG_TAIL_LINES = 5
LOG_TAIL_BYTES = 4096

_serial = itertools.count(1)


def new_log() -> Path:
    """An empty log file; raises `PeagleError` where there can be none."""
    folder = locations.logs()
    name = f"engine-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{next(_serial)}.log"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    except OSError as error:
        raise PeagleError(
            f"The log folder {folder} cannot be written to: {error.strerror}.", "Move it with PEAGLE_LOG_DIR."
        ) from error
    for old in sorted(folder.glob("engine-*.log"))[:-KEPT_LOGS]:
        with contextlib.suppress(OSError):
            old.unlink()
    return folder / name


def log_says(path: Path) -> str:
    """Where a log is and its last lines, safe to print."""
    lines = last_lines(path)
    if not lines:
        return f"Its log is empty: {path}"
    tail = "\n".join(f"  {line}" for line in lines[-LOG_TAIL_LINES:])
    return f"Its log ends so ({path}):\n{tail}"


def last_lines(path: Path, size: int = LOG_TAIL_BYTES) -> list[str]:
    """The lines that say something in the last `size` bytes of a log, safe to print."""
    with path.open("rb") as log:
        log.seek(max(0, log.seek(0, os.SEEK_END) - size))
        lines = log.read().decode(errors="replace").splitlines()
    return [printable(line) for line in lines if any(map(str.isalnum, line))]
