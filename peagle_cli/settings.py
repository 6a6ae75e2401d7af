"""The user's settings: `config.toml` in the configuration folder, with the same names as the options of `peagle chat`.

A `PEAGLE_*` variable overrides a setting, an option on the command line overrides both; that is the command line's
affair (`cli/app.py`).
"""

import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import tomlkit

from peagle_cli import locations
from peagle_cli.errors import BadInputError, PeagleError
from peagle_cli.trace.events import Method

OPENING = ("model", "drafter", "dtype", "device")
"""Which engine to open: the settings that every command heeds that opens one."""

NotNegative = Annotated[int, msgspec.Meta(ge=0)]


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What `config.toml` may hold; each name is explained in `peagle chat --help`. But for `mouse`, whether the screen
    heeds the mouse, and `keys`, the screen's keys (`tui/keys.py`): they have no options."""

    model: str | None = None
    drafter: tuple[str, ...] = ()
    method: Method | None = None
    depth: NotNegative | None = None
    auto: bool | None = None
    temperature: Annotated[float, msgspec.Meta(ge=0)] | None = None
    top_p: Annotated[float, msgspec.Meta(gt=0, le=1)] | None = None
    top_k: NotNegative | None = None
    seed: NotNegative | None = None
    max_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    system: str | None = None
    theme: str | None = None
    dtype: Literal["float32", "bfloat16", "int4"] | None = None
    device: str | None = None
    engine: str | None = None
    record: bool | None = None
    mouse: bool = True
    keys: dict[str, Any] = {}


def heeded_by(command: str) -> tuple[str, ...]:
    """The settings that are defaults of a command's options."""
    if command == "chat":
        return Settings.__struct_fields__
    if command == "compare":
        return (*OPENING, "engine", "record", "theme")
    if command == "replay":
        return ("theme",)
    return OPENING if command in ("bench", "doctor", "profile") else ()


def config_file() -> Path:
    """Where the settings are read from; it need not exist."""
    return locations.config() / "config.toml"


def read(path: Path) -> dict[str, Any]:
    """The settings that the file makes, by name. Raises `BadInputError` for anything it may not hold."""
    try:
        settings = msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), Settings)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:  # msgspec's and tomllib's errors are ValueErrors
        raise BadInputError(f"The settings in {path} cannot be used: {error}.", "Mend or remove the file.") from error
    kept: dict[str, Any] = msgspec.to_builtins(settings)
    return kept


def keep(name: str, value: str) -> None:
    """Set one setting in the file, which is made where there is none; everything else in it stays as it is.

    Raises `PeagleError` when that is not possible.
    """
    path = config_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        document = tomlkit.parse(path.read_text(encoding="utf-8") if path.exists() else "")
        document[name] = value
        replacement = path.with_name(f"{path.name}.part")
        replacement.write_text(tomlkit.dumps(document), encoding="utf-8")
        replacement.replace(path)
    except (OSError, ValueError) as error:  # tomlkit's errors are ValueErrors
        raise PeagleError(
            f"The choice cannot be remembered in {path}: {error}.", f'Set {name} = "{value}" there yourself.'
        ) from error
