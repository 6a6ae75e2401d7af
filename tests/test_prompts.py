from pathlib import Path

import pytest

from peagle_cli.errors import BadInputError
from peagle_cli.prompts import Prompt, read_prompts


def write(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "prompts"
    file.write_text(text, encoding="utf-8")
    return file


def test_the_built_in_set_covers_code_chat_and_lists() -> None:
    prompts = read_prompts()
    assert {prompt.category for prompt in prompts} == {"code", "chat", "list"}
    assert 12 <= len(prompts) <= 18
    assert len(set(prompts)) == len(prompts)


def test_json_lines_in_the_form_of_mt_bench(tmp_path: Path) -> None:
    file = write(
        tmp_path, '{"question_id": 81, "category": "writing", "turns": ["One", "Two"]}\n\n{"turns": ["Drei"]}\n'
    )
    assert read_prompts(file) == (Prompt(("One", "Two"), "writing"), Prompt(("Drei",)))


def test_plain_text_is_a_prompt_a_line(tmp_path: Path) -> None:
    assert read_prompts(write(tmp_path, "\ufeffFirst \n\n Second\r\n")) == (Prompt(("First",)), Prompt(("Second",)))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "no prompt"),
        (" \n\n", "no prompt"),
        ('{"turns": ["a"]}\n{"turns": []}', "Line 2"),
        ('{"turns": ["a"]}\n{"turns": [" "]}', "Line 2"),
        ('{"turns": "a"}', "Line 1"),
        ('{"prompt": "a"}', "Line 1"),
        ('{"turns": ["a"]}\nnonsense', "Line 2"),
    ],
)
def test_what_is_no_prompt_is_refused_with_its_line(tmp_path: Path, text: str, what: str) -> None:
    with pytest.raises(BadInputError, match=what) as caught:
        read_prompts(write(tmp_path, text))
    assert caught.value.hint


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="No such file"):
        read_prompts(tmp_path / "none")
    (tmp_path / "latin").write_bytes(b"caf\xe9")
    with pytest.raises(BadInputError, match="UTF-8"):
        read_prompts(tmp_path / "latin")
