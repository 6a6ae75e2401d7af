"""What a spec asks servers of our own for: checked, fetched as far as it is missing, and found to fit this machine."""

from pathlib import Path

import msgspec

from peagle_cli.engine.protocol import EngineSpec
from peagle_cli.engine.vllm import fit, installation, preflight
from peagle_cli.engine.vllm.installation import Installation
from peagle_cli.engine.vllm.preflight import Drafter
from peagle_cli.errors import BadInputError
from peagle_cli.models import store
from peagle_cli.models.progress import OnProgress
from peagle_cli.models.served import find_served
from peagle_cli.trace.events import METHOD_NAMES, Method


class Choice(msgspec.Struct, frozen=True):
    """The vLLM to run, the folder of the target and what people call it, its drafters, and the server's flags."""

    installation: Installation
    target: Path
    title: str
    drafters: dict[Method, Drafter]
    flags: tuple[str, ...]


def choose(spec: EngineSpec, on_progress: OnProgress) -> Choice:
    """Settle what servers for `spec` are to run.

    Raises `BadInputError` for what cannot be, `PeagleError` when something cannot be fetched.
    """
    preflight.check_flags(spec.flags)
    if spec.device is not None:
        raise BadInputError("vLLM runs on what it was built for.", "Leave --device out, and name no GPU with it.")
    if spec.dtype == "int4":
        raise BadInputError("The 4-bit weights are the embedded engine's.", "Leave --dtype out, or use bfloat16.")
    found = installation.find()
    served, flags = find_served(spec.model), spec.flags
    if served:
        flags = (*fit.flags_of(served, cpu=found.cpu), *flags)
        fit.check_fits(served, flags, cpu=found.cpu)
    target = store.target_folder(spec.model, on_progress)
    drafters: dict[Method, Drafter] = {}
    for folder in store.drafter_folders(spec.drafters, spec.model, on_progress):
        drafter = preflight.inspect_drafter(folder, target)
        if drafter.method in drafters:
            raise BadInputError(
                f"{drafters[drafter.method].folder} and {folder} are both {METHOD_NAMES[drafter.method]} drafters.",
                "Name one drafter per method.",
            )
        drafters[drafter.method] = drafter
    preset = served or store.find_preset(spec.model)
    return Choice(found, target, preset.title if preset else str(spec.model), drafters, flags)
