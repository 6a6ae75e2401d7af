"""What the embedded engine would run on this machine, and why: found without opening it."""

import os
import platform
import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec
import torch

import peagle_cli
from peagle_cli import locations
from peagle_cli.engine.protocol import EngineSpec
from peagle_cli.engine.torch import hardware
from peagle_cli.engine.torch.engine import ENGINE
from peagle_cli.errors import PeagleError
from peagle_cli.models import fetch, store
from peagle_cli.models.checkpoint import DrafterConfig, check_drafter, check_target, drafter_method
from peagle_cli.models.config import LlamaConfig
from peagle_cli.models.presets import Preset
from peagle_cli.trace.events import Method

FEATURES = ("avx2", "avx512_f", "avx512_vnni", "avx512_bf16", "amx_int8", "amx_bf16", "bf16")
"""The processor features, as torch names them, that matrix products of these models can use ("bf16" is Arm's)."""


class Processor(msgspec.Struct, frozen=True):
    """The CPU: how many of its `cpus` this process may use, and which of `FEATURES` it has."""

    name: str
    cpus: int
    usable_cpus: int
    features: tuple[str, ...]


class ModelFinding(msgspec.Struct, frozen=True):
    """The target. `folder` is None while it is still to be fetched; `download` is then its size in bytes, if known."""

    name: str
    folder: Path | None
    download: int | None
    problem: str | None


class DrafterFinding(msgspec.Struct, frozen=True):
    """A drafter. `method` is None for one that is still to be fetched, or has a problem; `checked` says whether it was
    found to fit the target, which must be here for that."""

    name: str
    method: Method | None
    checked: bool
    problem: str | None


class Plan(msgspec.Struct, frozen=True):
    """What will run. The `why_…` fields say in a few words how the choice was made."""

    engine: str
    device: str
    why_device: str
    dtype: str
    why_dtype: str
    threads: int
    why_threads: str


class Diagnosis(msgspec.Struct, frozen=True):
    """Everything that decides what runs. `cache_free` is in bytes."""

    peagle: str
    python: str
    torch: str
    processor: Processor
    gpus: tuple[str, ...]
    cache: Path
    cache_free: int
    model: ModelFinding
    drafters: tuple[DrafterFinding, ...]
    plan: Plan

    @property
    def problems(self) -> tuple[str, ...]:
        """What keeps the engine from running as asked."""
        findings: tuple[ModelFinding | DrafterFinding, ...] = (self.model, *self.drafters)
        return tuple(finding.problem for finding in findings if finding.problem)


def diagnose(spec: EngineSpec) -> Diagnosis:
    """Look at everything that opening `spec` would depend on, fetching and loading nothing.

    Raises `BadInputError` for a device or a name that means nothing.
    """
    cache = locations.cache()
    processor = Processor(
        hardware.device_name(torch.device("cpu")), os.cpu_count() or 1, hardware.usable_cpus(), _cpu_features()
    )
    model, target = _look_at_model(spec.model)
    return Diagnosis(
        peagle=peagle_cli.__version__,
        python=platform.python_version(),
        torch=str(torch.__version__),  # a subclass of str that is not plain JSON
        processor=processor,
        gpus=tuple(torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())),
        cache=cache,
        cache_free=shutil.disk_usage(locations.nearest_existing(cache)).free,
        model=model,
        drafters=_look_at_drafters(spec, target),
        plan=_plan(spec, processor),
    )


def _cpu_features() -> tuple[str, ...]:
    capabilities = torch.cpu.get_capabilities()
    return tuple(name for name in FEATURES if capabilities.get(name))


def _look_at_model(name: str | None) -> tuple[ModelFinding, LlamaConfig | None]:
    """The target, and its shape if it is here and can run."""
    preset = store.find_preset(name)
    title = preset.title if preset else str(name)
    folder = store.present_folder(name)
    if folder is None:
        return _look_for_room(title, preset), None
    try:
        config = LlamaConfig.read(folder)
        check_target(folder, config)
    except PeagleError as error:
        return ModelFinding(title, folder, None, str(error)), None
    return ModelFinding(title, folder, None, None), config


def _look_for_room(title: str, preset: Preset | None) -> ModelFinding:
    """A target that is still to be fetched."""
    if preset is None:
        return ModelFinding(title, None, None, None)
    try:
        fetch.check_room(preset, store.preset_folder(preset))
    except PeagleError as error:
        return ModelFinding(title, None, preset.source.size, str(error))
    return ModelFinding(title, None, preset.source.size, None)


def _look_at_drafters(spec: EngineSpec, target: LlamaConfig | None) -> tuple[DrafterFinding, ...]:
    preset = store.find_preset(spec.model)
    named: Sequence[str] = spec.drafters or [str(folder) for folder in (preset.drafters if preset else ())]
    return tuple(_look_at_drafter(name, target) for name in named)


def _look_at_drafter(name: str, target: LlamaConfig | None) -> DrafterFinding:
    folder = store.present_folder(name)
    if folder is None:
        return DrafterFinding(name, None, checked=False, problem=None)
    try:
        method = drafter_method(folder)
        if target:
            check_drafter(folder, DrafterConfig.read(folder, target), target)
    except PeagleError as error:
        return DrafterFinding(name, None, checked=False, problem=str(error))
    return DrafterFinding(name, method, checked=target is not None, problem=None)


def _plan(spec: EngineSpec, processor: Processor) -> Plan:
    device = hardware.choose_device(spec.device)
    at_4_bits = spec.dtype in (None, "int4") and store.gguf_file(spec.model) is not None and hardware.has_int4(device)
    dtype = hardware.dtype_name(hardware.choose_dtype("int4" if at_4_bits else spec.dtype, device))
    some_cpus = f"all that this process may use of {processor.cpus}"
    return Plan(
        engine=ENGINE,
        device=str(device),
        why_device=_why(spec.device, "torch finds it" if device.type == "cuda" else "torch finds no GPU"),
        dtype=f"{dtype} with int4 weights" if at_4_bits else dtype,
        why_dtype=_why(spec.dtype, _why_dtype(device, at_4_bits)),
        threads=processor.usable_cpus,
        why_threads="one per CPU" if processor.usable_cpus == processor.cpus else some_cpus,
    )


def _why_dtype(device: torch.device, at_4_bits: bool) -> str:
    if hardware.computes_in_bfloat16(device):
        return f"the {'GPU' if device.type == 'cuda' else 'processor'} computes in it"
    return "a step reads the least memory with it" if at_4_bits else "bfloat16 would be slower here"


def _why(asked: str | None, otherwise: str) -> str:
    return "as asked" if asked else otherwise
