"""What was written in the prompt before, in this session and in earlier ones. Knows no screen.

The file has one JSON string per line, oldest first, for its owner's eyes only. Several sessions may add to it at once:
lines are appended whole, and only a file that has grown to twice the cap is written anew.
"""

import os
import tempfile
from pathlib import Path

import msgspec

from peagle_cli.text import printable

MAX_KEPT = 1000
"""Prompts that are kept; the oldest make room for the new."""

MAX_BYTES = 16 << 10
"""Longer prompts, such as pasted files, are kept for the session alone."""

_FILE_MODE = 0o600


class PromptHistory:
    """Prompts, newest last. `path` is where they are kept, None to keep them for this session alone.

    A file that cannot be read or written takes nothing away but the memory of earlier sessions; `trouble` then says
    why in one sentence.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.trouble = ""
        self._path = path
        self._prompts: list[str] = []
        if path is not None:
            self._read(path)

    def __len__(self) -> int:
        return len(self._prompts)

    def add(self, prompt: str) -> None:
        """Keep `prompt` as the newest; one that is the newest already is not repeated."""
        if self._prompts and self._prompts[-1] == prompt:
            return
        self._prompts.append(prompt)
        if self._path is not None:
            self._append(self._path, msgspec.json.encode(_decodable(prompt)))

    def before(self, index: int, prefix: str = "") -> int | None:
        """The index of the newest prompt before `index` that begins with `prefix`; None for none."""
        return next((i for i in range(index - 1, -1, -1) if self._prompts[i].startswith(prefix)), None)

    def after(self, index: int, prefix: str = "") -> int | None:
        """The index of the oldest prompt after `index` that begins with `prefix`; None for none."""
        return next((i for i in range(index + 1, len(self)) if self._prompts[i].startswith(prefix)), None)

    def __getitem__(self, index: int) -> str:
        return self._prompts[index]

    def _read(self, path: Path) -> None:
        try:
            lines = path.read_bytes().splitlines()
        except FileNotFoundError:
            return
        except OSError as error:
            self.trouble = f"Earlier prompts cannot be read from {path}: {error.strerror}."
            return
        for line in lines[-MAX_KEPT:]:
            try:
                self._prompts.append(printable(msgspec.json.decode(line, type=str)))
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue  # torn by a full disk, or not ours: the other lines are still good
        if len(lines) >= 2 * MAX_KEPT:
            self._shorten(path, lines[-MAX_KEPT:])

    def _append(self, path: Path, line: bytes) -> None:
        if len(line) > MAX_BYTES:
            return
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, _FILE_MODE)
            try:
                os.write(file, line + b"\n")
            finally:
                os.close(file)
        except OSError as error:
            self.trouble = f"Prompts cannot be kept in {path}: {error.strerror}."
            self._path = None

    def _shorten(self, path: Path, lines: list[bytes]) -> None:
        """Keep these lines only. The file is replaced in one go, so that no other session reads half of it."""
        try:
            with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:  # private from the start
                file.write(b"".join(line + b"\n" for line in lines))
            Path(file.name).replace(path)
        except OSError as error:
            self.trouble = f"Prompts cannot be kept in {path}: {error.strerror}."


def _decodable(prompt: str) -> str:
    """`prompt` without lone surrogates, which no JSON can hold."""
    return prompt.encode(errors="replace").decode()
