"""The folder of recorded sessions: names for new recordings, finding them again, and a limit to what they take up."""

import datetime
from pathlib import Path

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
    return [path for _, path in sorted(_by_age())]


def find(name: str) -> Path:
    """The recording that `name` names: a file, a recording's name or a part of it that no other has, or `LAST`.

    Raises `BadInputError` when there is none or more than one.
    """
    if Path(name).is_file():
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
    ages = sorted(_by_age())
    total = sum(path.stat().st_size for _, path in ages)
    for _, path in ages:
        if total <= limit:
            return
        if path != keep:
            total -= path.stat().st_size
            path.unlink()


def _by_age() -> list[tuple[float, Path]]:
    """The recordings with the time that they were last written."""
    folder = locations.sessions()
    if not folder.is_dir():
        return []
    found = [*folder.glob(f"*{SUFFIX}"), *folder.glob(f"*{SUFFIX}.gz")]
    return [(path.stat().st_mtime, path) for path in found]
