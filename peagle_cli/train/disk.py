"""Writing files that are whole or absent, whatever happens meanwhile, and by one process at a time."""

import contextlib
import fcntl
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from peagle_cli.errors import BadInputError, PeagleError


def save_tensors(tensors: Mapping[str, Tensor], path: Path, metadata: Mapping[str, str] | None = None) -> None:
    """Write a safetensors file in one piece: until it is whole, what stood at `path` stays there.

    Raises `PeagleError` when the disk does not take it.
    """
    with _in_one_piece(path) as part:
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, part, dict(metadata or {}))
        part.chmod(0o644)  # safetensors keeps its files to their owner


def save_text(text: str, path: Path) -> None:
    """Write a text file in one piece; raises as `save_tensors` does."""
    save_bytes(text.encode(), path)


def save_bytes(data: bytes, path: Path) -> None:
    """Write a file in one piece; raises as `save_tensors` does."""
    with _in_one_piece(path) as part:
        part.write_bytes(data)


def make_folder(path: Path) -> None:
    """Make `path` a folder if there is none. Raises `BadInputError` for a file, `PeagleError` if it cannot be made."""
    if path.exists() and not path.is_dir():
        raise BadInputError(f"{path} is a file.", "Name a folder, or one that is to be made.")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _disk_error(path, error) from error


@contextlib.contextmanager
def held(place: Path) -> Iterator[None]:
    """Keep `place`, a folder or a file (made where there is none), to this process. The system lets go of it even after
    a kill.

    Raises `BadInputError` where another process holds it, `PeagleError` for a file that can't be made.
    """
    try:
        if not place.is_dir():
            place.touch()
    except OSError as error:
        raise _disk_error(place, error) from error
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(_locked(place, fcntl.LOCK_EX | fcntl.LOCK_NB))
        except BlockingIOError as error:
            raise BadInputError(
                f"Another peagle is writing {place}.", "Wait for its end, or choose another place with --out."
            ) from error
        yield


def in_turn(folder: Path) -> contextlib.AbstractContextManager[None]:
    """Wait until no other process has its turn at `folder`, which exists, and take it."""
    return _locked(folder, fcntl.LOCK_EX)


@contextlib.contextmanager
def _locked(place: Path, how: int) -> Iterator[None]:
    descriptor = os.open(place, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, how)
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _in_one_piece(path: Path) -> Iterator[Path]:
    """Where to write what is to stand at `path` when it is whole."""
    part = path.with_name(path.name + ".part")
    try:
        make_folder(path.parent)
        yield part
        _flush(part)
        part.replace(path)
    except (OSError, SafetensorError) as error:
        _discard(part)
        raise _disk_error(path, error) from error


def _flush(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _discard(path: Path) -> None:
    with contextlib.suppress(OSError):  # there may be no such place at all
        path.unlink()


def _disk_error(path: Path, error: Exception) -> PeagleError:
    reason = getattr(error, "strerror", None) or str(error)
    return PeagleError(
        f"{path} could not be written: {reason}.",
        "Make room or choose another folder, then run the same command again: it goes on from what is there.",
    )
