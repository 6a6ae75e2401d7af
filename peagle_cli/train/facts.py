"""What a run was made of, kept beside it for its drafter's card."""

from pathlib import Path

import msgspec

from peagle_cli.errors import BadInputError
from peagle_cli.train.disk import save_text
from peagle_cli.train.settings import Settings

FACTS = "facts.json"


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """A run's settings, target, data, first weights and machine, as of when it was last opened. Files go by their
    names alone. `start` is the drafter that it began with."""

    settings: Settings
    model: str
    parameters: int
    data: str
    conversations: int
    answer_tokens: int
    start: str | None
    machine: str
    threads: int
    torch: str


def save_facts(facts: Facts, folder: Path) -> None:
    """Keep them with the run in `folder`. Raises `PeagleError` when the disk does not take them."""
    save_text(msgspec.json.format(msgspec.json.encode(facts)).decode() + "\n", folder / FACTS)


def read_facts(folder: Path) -> Facts:
    """Those of the run in `folder`. Raises `BadInputError` when there are none."""
    try:
        return msgspec.json.decode((folder / FACTS).read_bytes(), type=Facts)
    except (OSError, msgspec.MsgspecError) as error:
        raise BadInputError(
            f"{folder} holds no training run: {error}.", "Name a folder of `peagle train run`."
        ) from error
