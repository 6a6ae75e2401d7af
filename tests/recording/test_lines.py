"""Lines that are kept packed."""

import pytest

from peagle_cli.recording.lines import PackedLines

LINES = [f"line {number}\n".encode() for number in range(150)] + [b"the last, cut"]


def test_any_line_comes_back_however_many_there_are() -> None:
    lines = PackedLines()
    for count, line in enumerate(LINES, 1):
        lines.append(line)
        assert len(lines) == count
        assert lines[0] == LINES[0]
        assert lines[count - 1] == line
        assert lines[count // 2] == LINES[count // 2]
    assert [lines[index] for index in range(len(lines))] == LINES


def test_there_are_no_others() -> None:
    lines = PackedLines()
    lines.append(LINES[0])
    for index in (1, -1):
        with pytest.raises(IndexError):
            lines[index]
