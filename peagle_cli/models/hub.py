"""Models and drafters by their Hugging Face hub name, through the hub's own cache."""

import io
from pathlib import Path
from typing import Any

from peagle_cli.errors import BadInputError, PeagleError
from peagle_cli.models.progress import OnProgress, Progress

_WANTED = ["*.safetensors", "*.json", "*.jinja"]
_UNWANTED = ["*/*"]  # the same weights in other formats, as GPT-OSS has them


def is_hub_name(name: str) -> bool:
    """Whether `name` has the form owner/model."""
    return name.count("/") == 1 and not name.startswith((".", "/", "~")) and not name.endswith("/")


def snapshot(name: str, on_progress: OnProgress) -> Path:
    """The folder of the hub's model `name`, downloaded as far as it is not in the hub's cache.

    Raises `BadInputError` when the hub has no such model, `PeagleError` when it cannot be reached or refuses.
    """
    import huggingface_hub  # noqa: PLC0415  (slow to import, and only needed here)
    from huggingface_hub import errors  # noqa: PLC0415

    stage = f"Fetching {name}"
    on_progress(Progress(stage))
    bars = _reporting_bars(stage, on_progress)
    try:
        return Path(
            huggingface_hub.snapshot_download(name, allow_patterns=_WANTED, ignore_patterns=_UNWANTED, tqdm_class=bars)
        )
    except errors.HFValidationError as error:
        raise BadInputError(f"{name!r} cannot be a model's name.", "Hub names have the form owner/model.") from error
    except errors.GatedRepoError as error:
        raise PeagleError(
            f"{name} is gated on the Hugging Face hub.", "Accept its terms there, then log in with `hf auth login`."
        ) from error
    except errors.RepositoryNotFoundError as error:
        raise BadInputError(
            f"Neither a folder here nor a public model on the Hugging Face hub is called {name}.",
            "`peagle models list` shows the models known by name.",
        ) from error
    except errors.LocalEntryNotFoundError as error:
        raise PeagleError(
            f"{name} is not here yet, and the Hugging Face hub does not answer.",
            "Connect to the network once, or give the model's folder.",
        ) from error
    except Exception as error:  # the hub's HTTP client and its file system errors share no other base
        reason = str(error).strip().partition("\n")[0].rstrip(".")
        raise PeagleError(f"{name} could not be fetched from the Hugging Face hub: {reason}.") from error


def cached(name: str) -> Path | None:
    """The folder of the hub's model `name` in the hub's cache; None when it is not there as a whole."""
    import huggingface_hub  # noqa: PLC0415
    from huggingface_hub import errors  # noqa: PLC0415

    try:
        return Path(
            huggingface_hub.snapshot_download(
                name, allow_patterns=_WANTED, ignore_patterns=_UNWANTED, local_files_only=True
            )
        )
    except (errors.LocalEntryNotFoundError, errors.HFValidationError):
        return None


def _reporting_bars(stage: str, on_progress: OnProgress) -> Any:
    """A class of progress bars that report instead of drawing.

    The hub moves two at once, for bytes received and for bytes written; whichever is further is what is reported. Its
    threads draw one at a time, under tqdm's lock.
    """
    from tqdm import tqdm  # noqa: PLC0415  (the hub's own dependency, and only needed with it)

    furthest = 0

    class Bar(tqdm):  # type: ignore[type-arg]  # not generic when it runs
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **{**options, "file": io.StringIO(), "leave": False})

        def display(self, msg: str | None = None, pos: int | None = None) -> None:
            nonlocal furthest
            if msg is None and self.unit == "B" and self.total:  # a closing bar erases itself with a message
                furthest = max(furthest, int(self.n))
                on_progress(Progress(stage, furthest, int(self.total), "bytes"))

    return Bar
