"""Reads what safetensors files hold without reading their tensors.

A file is an 8-byte little-endian length, that many bytes of JSON (per tensor: dtype, shape, where its bytes are), then
the bytes (https://github.com/huggingface/safetensors#format).
"""

import math
from pathlib import Path

import msgspec

from peagle_cli.errors import BadInputError
from peagle_cli.models.config import read_json

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"

_LENGTH_BYTES = 8
_LONGEST_HEADER = 100_000_000  # bytes; the limit of the safetensors library
_ITEM_BYTES = {"F64": 8, "I64": 8, "U64": 8, "F32": 4, "I32": 4, "U32": 4, "F16": 2, "BF16": 2, "I16": 2, "U16": 2}
_ITEM_BYTES |= {"F8_E4M3": 1, "F8_E5M2": 1, "I8": 1, "U8": 1, "BOOL": 1}


class TensorHeader(msgspec.Struct, frozen=True):
    """What is said about one tensor: its dtype in safetensors' names; its bytes are those from `start` to `stop`."""

    file: Path
    dtype: str
    shape: tuple[int, ...]
    start: int
    stop: int


class _Entry(msgspec.Struct, frozen=True):
    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]


def read_headers(folder: Path) -> dict[str, TensorHeader]:
    """The tensors of a checkpoint by name, from model.safetensors or from the shards that an index names.

    Raises `BadInputError` when a file is missing, cut short or not in the format.
    """
    index = folder / INDEX
    if not index.is_file():
        return read_header(folder / SINGLE)
    try:
        placed = msgspec.convert(read_json(index).get("weight_map"), dict[str, str])
    except msgspec.ValidationError as error:
        raise BadInputError(f"{index} does not say which file holds which tensor.", "Download it again.") from error
    tensors: dict[str, TensorHeader] = {}
    for shard in sorted(set(placed.values())):
        if Path(shard).name != shard:
            raise BadInputError(f"{index} names a file outside its folder: {shard!r}.", "Use another copy.")
        tensors.update(read_header(folder / shard))
    if absent := sorted(placed.keys() - tensors.keys()):
        raise BadInputError(f"{absent[0]} is in none of the files that {index} names.", "Download the model again.")
    return tensors


def read_header(path: Path) -> dict[str, TensorHeader]:
    """The tensors in one file by name; raises `BadInputError` as `read_headers` does."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
            data = _LENGTH_BYTES + length
            header = file.read(min(length, _LONGEST_HEADER))
    except OSError as error:
        raise BadInputError(
            f"{path} cannot be read: {error.strerror}.", "A model's weights must be safetensors files."
        ) from error
    if size < _LENGTH_BYTES or (data > size and length <= _LONGEST_HEADER):
        raise _cut_short(path, data, size)
    entries = _entries(path, header)
    if (end := data + max((entry.data_offsets[1] for entry in entries.values()), default=0)) > size:
        raise _cut_short(path, end, size)
    return {
        name: TensorHeader(path, entry.dtype, entry.shape, data + entry.data_offsets[0], data + entry.data_offsets[1])
        for name, entry in entries.items()
    }


def _entries(path: Path, header: bytes) -> dict[str, _Entry]:
    """The header's tensors, each of a size that fits its shape."""
    try:
        raw = msgspec.json.decode(header, type=dict[str, msgspec.Raw])
        raw.pop("__metadata__", None)
        entries = {name: msgspec.json.decode(entry, type=_Entry) for name, entry in raw.items()}
    except msgspec.MsgspecError as error:
        raise BadInputError(f"{path} is not a safetensors file.", "Download it again.") from error
    for name, entry in entries.items():
        start, stop = entry.data_offsets
        expected = math.prod(entry.shape) * _ITEM_BYTES.get(entry.dtype, 0)
        if start < 0 or min(entry.shape, default=0) < 0 or (expected and stop - start != expected):
            raise BadInputError(f"{path} is damaged: the size of {name} does not fit its shape.", "Download it again.")
    return entries


def _cut_short(path: Path, expected: int, size: int) -> BadInputError:
    return BadInputError(
        f"{path} is cut short: it should have {expected:,} bytes and has {size:,}.", "Download it again."
    )
