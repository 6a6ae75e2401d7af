"""Data that the target writes by itself."""

from pathlib import Path

import pytest

from peagle_cli.engine.torch.target import Target
from peagle_cli.errors import BadInputError
from peagle_cli.models.tokenizer import Tokenizer
from peagle_cli.train.conversations import read_conversations
from peagle_cli.train.self_distillation import Amount, write_data
from peagle_cli.train.writers import EngineWriter
from tests import tiny


@pytest.fixture(scope="module")
def writer(target: Target, target_folder: Path) -> EngineWriter:
    return EngineWriter(target, Tokenizer.load(target_folder))


def write(path: Path, folder: Path, writer: EngineWriter, prompts: list[str], tokens: int) -> list[Amount]:
    heard: list[Amount] = []
    write_data(path, Tokenizer.load(folder), writer, prompts, tokens, 16, heard.append)
    return heard


def test_given_prompts_come_first_then_the_targets_own(
    tmp_path: Path, target_folder: Path, writer: EngineWriter
) -> None:
    path = tmp_path / "data.jsonl"
    heard = write(path, target_folder, writer, ["Name a river.", "Name a hill."], 100)
    conversations = read_conversations(path, tiny.VOCAB, 2048)
    tokenizer = Tokenizer.load(target_folder)
    prompts = [tokenizer.decode(c.ids[: c.prompt]) for c in conversations]
    assert "Name a river." in prompts[0]
    assert "Name a hill." in prompts[1]
    assert all("user" in prompt for prompt in prompts)
    assert len(set(prompts)) == len(prompts)
    assert heard[-1].answer_tokens >= 100


def test_it_goes_on_where_it_was_stopped(tmp_path: Path, target_folder: Path, writer: EngineWriter) -> None:
    whole, cut = tmp_path / "whole.jsonl", tmp_path / "cut.jsonl"
    write(whole, target_folder, writer, ["Name a river."], 120)
    write(cut, target_folder, writer, ["Name a river."], 60)
    with cut.open("ab") as file:
        file.write(b'{"ids":[1,2')  # killed while writing
    heard = write(cut, target_folder, writer, ["Name a river."], 120)
    assert heard[0].answer_tokens >= 60
    assert cut.read_bytes() == whole.read_bytes()


def test_a_file_of_something_else_is_not_touched(tmp_path: Path, target_folder: Path, writer: EngineWriter) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("mine\n")
    with pytest.raises(BadInputError, match=r"Line 1 of .* is not a conversation"):
        write(path, target_folder, writer, [], 10)
    assert path.read_text() == "mine\n"
    with pytest.raises(BadInputError, match="cannot be read"):
        write(tmp_path, target_folder, writer, [], 10)
