"""Exports of damaged and hostile recordings: a refusal in a sentence, or output that is safe to show."""

import gzip
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from peagle_cli.errors import BadInputError
from peagle_cli.recording.export.as_cast import cast_of
from peagle_cli.recording.export.as_csv import csv_of
from peagle_cli.recording.export.as_html import html_of
from peagle_cli.recording.export.as_json import json_of
from peagle_cli.recording.export.as_markdown import markdown_of
from tests.recordings import Recorded

EXPORTS = [cast_of, csv_of, html_of, json_of, markdown_of]
STRANGE = (
    "\\u001b[2J",
    "\\u202e",
    "\u202e",
    "</script>",
    "\\ud83d",
    "1e999",
    "-0",
    "null",
    "[[[",
    "9" * 4000,
    '"',
    "\n",
)
UNSAFE = ("\x1b", "\x07", "\u202e", "\x9b")


def damaged(data: bytes, chance: random.Random) -> bytes:
    """The recording with one to three things wrong with it."""
    lines = data.splitlines(keepends=True)
    for _ in range(chance.randint(1, 3)):
        i = chance.randrange(len(lines))
        line = bytearray(lines[i])
        at = chance.randrange(len(line))
        match chance.randrange(6):
            case 0:
                line[at] ^= 1 << chance.randrange(8)
            case 1:
                line[at:at] = chance.choice(STRANGE).encode()
            case 2:
                line = bytearray(line.replace(b'"text":"', b'"text":"' + chance.choice(STRANGE[:5]).encode()))
            case 3:
                lines[i], lines[i - 1] = lines[i - 1], lines[i]
                continue
            case 4:
                del lines[i]
                continue
            case 5:
                digits = [j for j, byte in enumerate(line) if chr(byte).isdigit()]
                if digits:
                    line[chance.choice(digits)] = ord(chance.choice("09-e."))
        lines[i] = bytes(line)
    data = b"".join(lines)
    return gzip.compress(data) if chance.random() < 0.2 else data


@pytest.mark.parametrize("export", EXPORTS)
def test_damaged_recordings(recorded: Recorded, tmp_path: Path, export: Callable[[Path], Iterator[str]]) -> None:
    chance = random.Random(1)
    path = tmp_path / "r"
    exported = 0
    for _ in range(150):
        path.write_bytes(damaged(recorded.path.read_bytes(), chance))
        try:
            output = "".join(export(path))
        except BadInputError as error:
            assert error.message.count("\n") == 0
            continue
        exported += 1
        assert not any(unsafe in output for unsafe in UNSAFE)
        if export is html_of:
            assert output.count("</script>") == 2
    assert exported > 10
