"""What the embedded engine runs on: device, activations' dtype, threads, and their names."""

import functools
import math
import os
import platform
from pathlib import Path

import torch

from peagle_cli.engine.protocol import Precision
from peagle_cli.errors import BadInputError

DTYPES: dict[Precision, torch.dtype] = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "int4": torch.bfloat16,
}
"""What activations are in."""


def choose_device(asked: str | None) -> torch.device:
    """The device asked for, or CUDA where there is any, or the CPU. Raises `BadInputError` for one that is missing."""
    name = asked or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise BadInputError(f"There is no device called {name!r}.", "Use cpu, cuda or cuda:N.") from None
    if device.type not in ("cpu", "cuda") or (device.type == "cpu" and device.index is not None):
        raise BadInputError(f"The embedded engine does not run on {name}.", "Use cpu, cuda or cuda:N.")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise BadInputError(f"torch finds no {name} here.", "Use --device cpu, or install a torch built for your GPU.")
    return device


def choose_dtype(asked: Precision | None, device: torch.device) -> torch.dtype:
    """The dtype asked for, or bfloat16 where the processor computes in it, or float32."""
    if asked:
        return DTYPES[asked]
    return torch.bfloat16 if computes_in_bfloat16(device) else torch.float32


@functools.cache
def computes_in_bfloat16(device: torch.device) -> bool:
    """Whether `device` multiplies bfloat16 matrices itself, rather than through float32."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    capabilities = torch.cpu.get_capabilities()
    return any(capabilities.get(name, False) for name in ("avx512_bf16", "amx_bf16", "bf16"))


def has_int4(device: torch.device) -> bool:
    """Whether 4-bit weights serve on `device`: with AVX-512, whether it computes in bfloat16 or not, since torch's
    kernel for them multiplies in float32. There is one for AVX2, too, but attention in bfloat16 there depends on how
    many tokens share a pass, and verifying would not give what plain decoding gives."""
    return device.type == "cpu" and torch.backends.cpu.get_cpu_capability() == "AVX512"


def dtype_name(dtype: torch.dtype) -> str:
    """A dtype as users write it."""
    return str(dtype).removeprefix("torch.")


def device_name(device: torch.device) -> str:
    """The name of the processor behind `device`."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else _cpu_name()


def usable_cpus() -> int:
    """How many processors this process is really given: by affinity and by its control group's quota."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _cgroup_quota()
    return max(1, min(allowed, math.floor(quota))) if quota else allowed


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _cgroup_quota() -> float | None:
    """Processors granted by the control group, version 2 or 1; None when it sets no limit."""
    root = Path("/sys/fs/cgroup")
    try:
        if (root / "cpu.max").exists():
            quota, period = (root / "cpu.max").read_text().split()
        else:
            quota = (root / "cpu/cpu.cfs_quota_us").read_text()
            period = (root / "cpu/cpu.cfs_period_us").read_text()
        return int(quota) / int(period) if int(quota) > 0 else None
    except (OSError, ValueError):  # no such group, or "max"
        return None
