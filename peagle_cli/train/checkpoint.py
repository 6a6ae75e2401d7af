"""A training run on disk, so that it can go on after being killed at any moment.

Everything of a moment is in one safetensors file that is replaced in one piece: the drafter, the optimisers, and how
far the run was. Two such files are kept: the latest, and the last one before learning rates began to fall, from which
a longer run can go on as if it had been meant from the start.
"""

from pathlib import Path

import msgspec
import torch
from safetensors import safe_open
from torch import Tensor

from peagle_cli.errors import BadInputError
from peagle_cli.train.disk import save_tensors
from peagle_cli.train.model import TrainableDrafter
from peagle_cli.train.optimise import Optimiser
from peagle_cli.train.settings import End

LATEST = "latest.safetensors"
UNDECAYED = "undecayed.safetensors"


class Position(msgspec.Struct, frozen=True):
    """How far a run is: optimiser steps, tokens seen, seconds trained, and the next batch within the current epoch."""

    step: int = 0
    tokens: int = 0
    seconds: float = 0.0
    epoch: int = 0
    batch: int = 0


class Moment(msgspec.Struct, frozen=True):
    """A position, the end that the run was heading for, and whether rates were falling towards it already."""

    position: Position
    end: End
    decaying: bool


def save(path: Path, drafter: TrainableDrafter, optimiser: Optimiser, moment: Moment) -> None:
    """Keep a moment. Raises `PeagleError` when the disk does not take it; what was there before then still is."""
    tensors = {f"drafter:{name}": tensor for name, tensor in drafter.state_dict().items()}
    tensors |= {f"optimiser:{name}": tensor for name, tensor in optimiser.state()}
    metadata = {"moment": msgspec.json.encode(moment).decode()}
    save_tensors({name: tensor.cpu() for name, tensor in tensors.items()}, path, metadata)


def restore(path: Path, drafter: TrainableDrafter, optimiser: Optimiser) -> Moment | None:
    """Go back to a moment; None if none was kept. Raises `BadInputError` when the run there was of other sizes."""
    if not path.exists():
        return None
    with safe_open(path, framework="pt") as file:
        tensors: dict[str, Tensor] = {name: file.get_tensor(name) for name in list(file.keys())}
        moment = msgspec.json.decode(file.metadata()["moment"], type=Moment)
    own, kept = drafter.state_dict(), _under("drafter:", tensors)
    if {name: tensor.shape for name, tensor in own.items()} != {name: tensor.shape for name, tensor in kept.items()}:
        raise BadInputError(
            f"The run in {path.parent} trains a drafter of other sizes.", "Give its own options, or another folder."
        )
    with torch.no_grad():
        for name, tensor in kept.items():
            own[name].copy_(tensor)
    optimiser.restore(_under("optimiser:", tensors))
    return moment


def draft_ids(folder: Path) -> Tensor | None:
    """The draft vocabulary of the run in `folder`; None if none has been begun there."""
    path = folder / LATEST
    if not path.exists():
        return None
    with safe_open(path, framework="pt") as file:
        ids: Tensor = file.get_tensor("drafter:draft_ids")
        return ids


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
