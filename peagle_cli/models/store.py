"""Where models are: turns what users name (a preset, a hub name, a folder) into folders, fetching what is missing."""

import difflib
from collections.abc import Sequence
from pathlib import Path

from peagle_cli import locations
from peagle_cli.errors import BadInputError
from peagle_cli.models import fetch, hub
from peagle_cli.models.presets import DEFAULT, PRESETS, Preset
from peagle_cli.models.progress import OnProgress, unheard
from peagle_cli.models.served import SERVED, find_served


def target_folder(name: str | None = None, on_progress: OnProgress = unheard) -> Path:
    """The folder of a target, in the form of the Hugging Face hub; None is the default target.

    Raises `BadInputError` for a name that means nothing, `PeagleError` when the model cannot be fetched.
    """
    preset = find_preset(name)
    if preset is None:
        assert name is not None  # None is the default preset
        return _named_folder(_repository(name), on_progress)
    folder = preset_folder(preset)
    if not folder.is_dir():
        fetch.install(preset, folder, on_progress)
    return folder


def present_folder(name: str | None = None) -> Path | None:
    """The folder of a target that is here already; None for one that would have to be fetched.

    Raises `BadInputError` for a name that means nothing.
    """
    preset = find_preset(name)
    if preset is None:
        assert name is not None  # None is the default preset
        name = _repository(name)
        return hub.cached(name) if _is_elsewhere(name) else Path(name).expanduser()
    folder = preset_folder(preset)
    return folder if folder.is_dir() else None


def drafter_folders(
    drafters: Sequence[str], model: str | None = None, on_progress: OnProgress = unheard
) -> tuple[Path, ...]:
    """The folders of the drafters named, or of those known for `model` when none is named.

    Raises as `target_folder` does.
    """
    if drafters:
        return tuple(_named_folder(drafter, on_progress) for drafter in drafters)
    if served := find_served(model):
        return tuple(hub.snapshot(drafter.repository, on_progress) for drafter in served.drafters)
    preset = find_preset(model)
    return preset.drafters if preset else ()


def find_preset(name: str | None) -> Preset | None:
    """The preset called `name`, in any case; the default for None."""
    return DEFAULT if name is None else PRESETS.get(name.lower())


def preset_folder(preset: Preset) -> Path:
    """Where the preset's model is, or will be once fetched."""
    return locations.models() / preset.name


def gguf_file(name: str | None) -> Path | None:
    """The GGUF file that a target was made of, where it is or will be once fetched; None for one that was not."""
    preset = find_preset(name)
    return preset_folder(preset) / Path(preset.source.member).name if preset else None


def _repository(name: str) -> str:
    """The hub's name of a model for vLLM that is known by another; any other name as it is."""
    served = find_served(name)
    return served.repository if served else name


def _named_folder(name: str, on_progress: OnProgress) -> Path:
    return hub.snapshot(name, on_progress) if _is_elsewhere(name) else Path(name).expanduser()


def _is_elsewhere(name: str) -> bool:
    """Whether `name` is a hub name, and not a folder; raises `BadInputError` when it is neither."""
    if name and Path(name).expanduser().is_dir():
        return False
    if hub.is_hub_name(name):
        return True
    near = difflib.get_close_matches(name.lower(), [*PRESETS, *SERVED])
    raise BadInputError(
        f"There is no model or folder called {name!r}.",
        f"Did you mean {near[0]}?" if near else "Give a folder, a hub name (owner/model) or a preset's name.",
    )
