"""What memory this machine has: found without torch, which would take seconds to import."""

import contextlib
import os
import subprocess
from pathlib import Path

import msgspec

_MIB = 2**20
_CGROUP = Path("/sys/fs/cgroup")


class Gpu(msgspec.Struct, frozen=True):
    """A GPU and its memory, in bytes."""

    name: str
    total: int


def gpus() -> tuple[Gpu, ...] | None:
    """The NVIDIA GPUs that CUDA would use; None where nothing tells, because nvidia-smi is not here."""
    query = ["nvidia-smi", "--query-gpu=index,uuid,name,memory.total", "--format=csv,noheader,nounits"]
    try:
        told = subprocess.run(query, capture_output=True, text=True, check=False, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    rows = [[cell.strip() for cell in line.split(",")] for line in told.stdout.splitlines()]
    found = [(index, uuid, Gpu(name, int(total) * _MIB)) for index, uuid, name, total in filter(_is_gpu, rows)]
    if told.returncode != 0:
        return ()
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return tuple(gpu for _, _, gpu in found)
    chosen = [part.strip() for part in visible.split(",") if part.strip()]
    return tuple(
        gpu for part in chosen for index, uuid, gpu in found if index == part or (uuid and uuid.startswith(part))
    )


def _is_gpu(row: list[str]) -> bool:
    return len(row) == 4 and row[3].isdecimal()


def ram_available() -> int | None:
    """Bytes of memory that programs can still have, within the control group's limit; None where nothing tells."""
    free = _available()
    limit = _control_group_free()
    return limit if free is None else free if limit is None else min(free, limit)


def _available() -> int | None:
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return None


def _control_group_free() -> int | None:
    """What is left of the limit of a control group (version 2), file caches not counted as used."""
    with contextlib.suppress(OSError, ValueError):
        limit = int((_CGROUP / "memory.max").read_text())  # "max" is no number
        used = int((_CGROUP / "memory.current").read_text())
        stat = dict(line.split() for line in (_CGROUP / "memory.stat").read_text().splitlines())
        return limit - used + int(stat.get("inactive_file", 0))
    return None
