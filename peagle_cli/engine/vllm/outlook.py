"""Which of the models for vLLM would run on this machine, and why: found without starting or importing anything."""

from pathlib import Path

import msgspec

from peagle_cli.engine import memory
from peagle_cli.engine.memory import Gpu
from peagle_cli.engine.vllm import fit, installation
from peagle_cli.errors import PeagleError
from peagle_cli.models.served import SERVED, ServedModel


class ServedFinding(msgspec.Struct, frozen=True):
    """A model for vLLM: whether it would run, and in half a sentence why."""

    name: str
    runs: bool
    why: str


class Outlook(msgspec.Struct, frozen=True):
    """The vLLM that would be started, None with the `problem` where there is none; and what the machine has for it.

    `gpus` is None where nothing tells. Memory is in bytes.
    """

    version: str | None
    python: Path | None
    problem: str | None
    gpus: tuple[Gpu, ...] | None
    ram_available: int | None
    models: tuple[ServedFinding, ...]


def look() -> Outlook:
    """Look at vLLM, at the memory, and at every model known for them."""
    gpus, ram = memory.gpus(), memory.ram_available()
    try:
        found = installation.find()
    except PeagleError as error:
        unknown = tuple(ServedFinding(model.name, False, _without_vllm(model, gpus)) for model in SERVED.values())
        return Outlook(None, None, str(error), gpus, ram, unknown)
    findings = tuple(_finding(model, gpus, ram, cpu=found.cpu) for model in SERVED.values())
    return Outlook(found.version, found.python, None, gpus, ram, findings)


def _finding(model: ServedModel, gpus: tuple[Gpu, ...] | None, ram: int | None, *, cpu: bool) -> ServedFinding:
    flags = fit.flags_of(model, cpu=cpu)
    if reason := fit.why_not(model, flags, gpus=gpus, ram=ram, cpu=cpu):
        return ServedFinding(model.name, False, reason)
    needed = f"it needs {fit.need_of(model, flags).text}"
    if cpu:
        return ServedFinding(model.name, True, f"{needed}; on processors it is slow, and was never tried")
    if gpus is None:
        return ServedFinding(
            model.name, True, f"if the GPU has the memory, which nvidia-smi is not here to tell: {needed}"
        )
    return ServedFinding(model.name, True, needed)


def _without_vllm(model: ServedModel, gpus: tuple[Gpu, ...] | None) -> str:
    """There is no vLLM; and what else would be in the way if there were."""
    reason = "there is no vLLM here"
    also = fit.why_not(model, fit.flags_of(model, cpu=False), gpus=gpus, ram=None, cpu=False)
    return f"{reason}, and {also}" if also else reason
