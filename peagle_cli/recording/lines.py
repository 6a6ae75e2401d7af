"""Lines kept in memory at a small part of their size, for random access."""

import zlib
from functools import lru_cache

_LINES_PER_BLOCK = 32
"""Enough alike to pack well, few enough that looking at one of them does not take long."""

_BLOCKS_AT_HAND = 8
_FASTEST = 1


class PackedLines:
    """Lines of text in order, packed in blocks. Those looked at last stay at hand unpacked, for whoever goes on from
    there, in either direction. Every line ends with a newline, or is the last."""

    def __init__(self) -> None:
        self._blocks: list[bytes] = []
        self._latest: list[bytes] = []
        self._unpacked = lru_cache(_BLOCKS_AT_HAND)(self._unpack)

    def __len__(self) -> int:
        return len(self._blocks) * _LINES_PER_BLOCK + len(self._latest)

    def __getitem__(self, index: int) -> bytes:
        """The line at `index`, counted from 0. Raises `IndexError` where there is none."""
        if not 0 <= index < len(self):
            raise IndexError(index)
        block, place = divmod(index, _LINES_PER_BLOCK)
        return (self._latest if block == len(self._blocks) else self._unpacked(block))[place]

    def append(self, line: bytes) -> None:
        """Take the next line."""
        self._latest.append(line)
        if len(self._latest) == _LINES_PER_BLOCK:
            self._blocks.append(zlib.compress(b"".join(self._latest), _FASTEST))
            self._latest = []

    def _unpack(self, block: int) -> list[bytes]:
        return zlib.decompress(self._blocks[block]).splitlines(keepends=True)
