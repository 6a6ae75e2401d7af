"""Models and drafters by their Hugging Face hub name, through the hub's own cache."""

from pathlib import Path

from peagle_cli.errors import BadInputError, PeagleError
from peagle_cli.models.progress import OnProgress, Progress

_WANTED = ["*.safetensors", "*.json", "*.jinja"]


def is_hub_name(name: str) -> bool:
    """Whether `name` has the form owner/model."""
    return name.count("/") == 1 and not name.startswith((".", "/", "~")) and not name.endswith("/")


def snapshot(name: str, on_progress: OnProgress) -> Path:
    """The folder of the hub's model `name`, downloaded as far as it is not in the hub's cache.

    Raises `BadInputError` when the hub has no such model, `PeagleError` when it cannot be reached or refuses.
    """
    import huggingface_hub  # noqa: PLC0415  (slow to import, and only needed here)
    from huggingface_hub import errors  # noqa: PLC0415

    on_progress(Progress(f"Fetching {name} from the Hugging Face hub"))
    try:
        return Path(huggingface_hub.snapshot_download(name, allow_patterns=_WANTED))
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
