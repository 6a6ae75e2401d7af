"""The folder of recorded sessions: names for new recordings, finding them again, and a limit to what they take up."""

import contextlib
import datetime
from pathlib import Path
from typing import NamedTuple

from peagle_cli import locations
from peagle_cli.errors import BadInputError
from peagle_cli.recording.format import SUFFIX

MAX_TOTAL_BYTES = 256 << 20
"""What all recordings may take up together; the oldest make room for the new."""

LAST = "last"
"""Names the latest recording."""


def new_path(created: datetime.datetime) -> Path:
    """Where a recording that begins at `created` goes. Its folder exists afterwards, and is private.

    Raises `OSError` where the folder cannot be made.
    """
    folder = locations.sessions()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder / f"{created:%Y%m%d-%H%M%S}-{created.microsecond // 1000:03}{SUFFIX}"


def name_of(path: Path) -> str:
    """What a recording is called in lists and by `find`."""
    return path.name.removesuffix(".gz").removesuffix(SUFFIX)


def recordings() -> list[Path]:
    """The recordings in the folder, oldest first."""
    return [kept.path for kept in _by_age()]


def find(name: str) -> Path:
    """The recording that `name` names: a file, a recording's name or a part of it that no other has, or `LAST`.

    Raises `BadInputError` when there is none or more than one.
    """
    if _is_readable(Path(name)):
        return Path(name)
    known = recordings()
    if name == LAST and known:
        return known[-1]
    found = [path for path in known if name == name_of(path)] or [path for path in known if name in name_of(path)]
    if len(found) == 1:
        return found[0]
    if found:
        raise BadInputError(f"{len(found)} recordings have {name!r} in their names.", "Name one of them in full.")
    raise BadInputError(f"There is no recording called {name!r}.", "`peagle sessions` lists them.")


def make_room(keep: Path, limit: int = MAX_TOTAL_BYTES) -> None:
    """Delete the oldest recordings but `keep` until all take up no more than `limit` bytes."""
    found = _by_age()
    total = sum(kept.size for kept in found)
    for kept in found:
        if total <= limit:
            return
        if kept.path != keep:
            total -= kept.size
            kept.path.unlink(missing_ok=True)  # another peagle may make room, too


class _Kept(NamedTuple):
    """A recording in the folder; the time is when it was last written."""

    written: float
    path: Path
    size: int


def _by_age() -> list[_Kept]:
    """The recordings, oldest first."""
    folder = locations.sessions()
    found = []
    for path in (*folder.glob(f"*{SUFFIX}"), *folder.glob(f"*{SUFFIX}.gz")):
        with contextlib.suppress(FileNotFoundError):
            status = path.stat()
            found.append(_Kept(status.st_mtime, path, status.st_size))
    return sorted(found)


def _is_readable(path: Path) -> bool:
    """Whether there is a file, or a pipe, of this name; no name is too odd to be asked for."""
    try:
        return path.exists() and not path.is_dir()
    except (OSError, ValueError):
        return False
