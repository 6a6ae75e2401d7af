"""Data files: what is read, and what is said about what cannot be."""

from pathlib import Path

import pytest

from peagle_cli.errors import BadInputError
from peagle_cli.train.conversations import Conversation, frequent_tokens, read_conversations

GOOD = '{"ids":[1,2,3,4,5,6,7,8,9,10,11,12],"prompt":3}'


def read(tmp_path: Path, *lines: str, max_length: int = 100) -> list[Conversation]:
    path = tmp_path / "data.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return read_conversations(path, 100, max_length)


def test_long_conversations_are_cut_and_short_answers_left_out(tmp_path: Path) -> None:
    assert [c.ids for c in read(tmp_path, GOOD, '{"ids":[1,2,3],"prompt":2}', max_length=11)] == [list(range(1, 12))]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"ids":[1,2', "Line 2 of"),
        ('{"ids":[1,2,3]}', "missing required field"),
        ('{"ids":[1,2,3],"prompt":9}', "a prompt of 9 tokens"),
        ('{"ids":[1,2,3000],"prompt":1}', "does not know"),
        ("", "Line 2 of"),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, line: str, says: str) -> None:
    with pytest.raises(BadInputError, match=says):
        read(tmp_path, GOOD, line, GOOD)


def test_missing_and_empty_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="cannot be read"):
        read_conversations(tmp_path / "none.jsonl", 100, 100)
    with pytest.raises(BadInputError, match="holds no conversation"):
        read(tmp_path, '{"ids":[1,2,3],"prompt":2}')


def test_vocabulary_is_that_of_answers() -> None:
    data = [Conversation([9, 9, 9, 5, 5, 2], 3), Conversation([9, 2, 5, 7], 1)]
    assert frequent_tokens(data, 2, 10) == [2, 5]
