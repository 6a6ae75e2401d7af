"""The recordings that come with peagle: real sessions, each with a line on what it shows."""

import tomllib
from importlib import resources
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec

from peagle_cli.recording import sessions
from peagle_cli.recording.format import SUFFIX
from peagle_cli.trace.events import Method

Step = Annotated[int, msgspec.Meta(ge=1)]


class Change(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is changed before the step `step` of a request's only lane."""

    step: Step
    depth: int | None = None
    method: Method | None = None


class Ask(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One request of a demo; `lanes` are written "method depth"."""

    prompt: str
    lanes: tuple[str, ...]
    temperature: float = 0.0
    seed: int | None = None
    changes: tuple[Change, ...] = ()


class Script(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a demo is recorded, and a line on what it shows."""

    title: str
    ask: tuple[Ask, ...]


class Demo(NamedTuple):
    """A bundled recording."""

    name: str
    title: str
    path: Path


def folder() -> Path:
    """Where the demos are."""
    return Path(str(resources.files("peagle_cli") / "demos"))


def scripts() -> dict[str, Script]:
    """How the demos are recorded, by name, in the order in which they are offered."""
    text = (folder() / "demos.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), dict[str, Script])


def demos() -> list[Demo]:
    """The demos that have been recorded."""
    paths = {name: folder() / f"{name}{SUFFIX}.gz" for name in scripts()}
    return [Demo(name, script.title, paths[name]) for name, script in scripts().items() if paths[name].is_file()]


def find(name: str) -> Path:
    """The recording that `name` names: a demo, or what `sessions.find` finds. Raises `BadInputError` for none."""
    return next((demo.path for demo in demos() if demo.name == name), None) or sessions.find(name)
