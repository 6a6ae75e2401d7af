"""Reads a recording line by line in bounded memory, plain or gzipped, and believes nothing it has not checked.

A file that was broken off while it was written is read up to its last whole line; anything else that does not follow
the format and its rules is refused, with the line.
"""

import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, Self

import msgspec

from peagle_cli.errors import BadInputError
from peagle_cli.recording.format import MAX_LINE_BYTES, SCHEMA, Entry, Header, entry_decoder, header_decoder
from peagle_cli.recording.rules import RuleError, Rules, check_header

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_GZIP_MAGIC = b"\x1f\x8b"
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)  # the last for brackets without end
_DISTRUST = "The recording cannot be trusted and is not used."


class Line(NamedTuple):
    """An entry of a recording: its line's number, counted from 1, the line itself, and what it says."""

    number: int
    raw: bytes
    entry: Entry


class _Schema(msgspec.Struct, tag="header", tag_field="record"):
    """What can be read of every header, of whatever schema."""

    schema: int


class Reader:
    """An open recording. Iterating it, which can be done once, yields the lines behind its header, each checked.

    `torn` says afterwards that the file ends within a line, which was left out. Opening and iterating raise
    `BadInputError` for a file that cannot be read or trusted.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.torn = False
        self._number = 0
        try:
            self._file = _open(path)
        except OSError as error:
            raise BadInputError(f"{path} cannot be read: {error.strerror}.", "Name a recording.") from error
        try:
            self.header = self._read_header()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._file.close()

    def __iter__(self) -> Iterator[Line]:
        rules = Rules(self.header)
        while line := self._next_line():
            try:
                entry = entry_decoder.decode(line)
                rules.check(entry)
            except _UNREADABLE as error:
                if not line.endswith(b"\n"):
                    self.torn = True
                    return
                raise self._refusal(f"cannot be read: {error}") from error
            except RuleError as error:
                raise self._refusal(str(error)) from error
            yield Line(self._number, line, entry)
        self.torn = isinstance(self._file.raw, _Unzipped) and self._file.raw.torn

    def _read_header(self) -> Header:
        line = self._next_line()
        try:
            schema = msgspec.json.decode(line, type=_Schema).schema
        except _UNREADABLE as error:
            raise BadInputError(
                f"{self.path} is no recording: it does not begin with a whole header.",
                "Recordings are made by peagle chat, and end in .peagle.jsonl.",
            ) from error
        if schema != SCHEMA:
            raise BadInputError(f"{self.path} is a recording of schema {schema}; {SCHEMA} is known.", "Update peagle.")
        try:
            header = header_decoder.decode(line)
            check_header(header)
        except _UNREADABLE as error:
            raise self._refusal(f"cannot be read: {error}") from error
        except RuleError as error:
            raise self._refusal(str(error)) from error
        return header

    def _next_line(self) -> bytes:
        """The next line, b"" at the end."""
        self._number += 1
        try:
            line = self._file.readline(MAX_LINE_BYTES + 1)
        except (OSError, zlib.error) as error:
            raise self._refusal(f"cannot be read: {error}") from error
        if len(line) > MAX_LINE_BYTES:
            raise self._refusal(f"is longer than {MAX_LINE_BYTES >> 20} MiB")
        return line

    def _refusal(self, what: str) -> BadInputError:
        return BadInputError(f"Line {self._number} of {self.path} {what}.", _DISTRUST)


class _Unzipped(io.RawIOBase):
    """A gzipped file's content; where the file is broken off, all that it still gives, and then `torn`."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__()
        self.torn = False
        self._file = file
        self._gzip = gzip.GzipFile(fileobj=file)

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        """Read what comes next, as much as there is room for at most."""
        view = memoryview(buffer).cast("B")
        try:
            data = self._gzip.read1(len(view))
        except EOFError:
            self.torn = True
            return 0
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Close the file too."""
        super().close()
        self._file.close()


def _open(path: Path) -> io.BufferedReader:
    file = path.open("rb")
    try:
        zipped = file.peek(2)[:2] == _GZIP_MAGIC
    except BaseException:
        file.close()
        raise
    return io.BufferedReader(_Unzipped(file)) if zipped else file
