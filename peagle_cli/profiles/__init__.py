"""Profiles of real machines, as `peagle profile` measured them there; a name is that of a file beside this module."""

from pathlib import Path

from peagle_cli.errors import BadInputError
from peagle_cli.trace.profile import Profile

_FOLDER = Path(__file__).parent


def shipped() -> list[str]:
    """The names of the profiles that ship."""
    return sorted(file.stem for file in _FOLDER.glob("*.json"))


def read_profile(name: str) -> Profile:
    """The profile in the file `name`, or the one that ships by that name. Raises `BadInputError` when there is none."""
    if name in shipped():
        return Profile.read(_FOLDER / f"{name}.json")
    path = Path(name).expanduser()
    if not path.is_file():
        raise BadInputError(
            f"There is no profile {name!r}.",
            f"Give a file of peagle profile{', or one of ' + ', '.join(shipped()) if shipped() else ''}.",
        )
    return Profile.read(path)
