"""Writing through vLLM, in its own process."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from peagle_cli.engine.vllm import installation
from peagle_cli.errors import BadInputError, PeagleError
from peagle_cli.models.tokenizer import Tokenizer
from peagle_cli.train.orders import CONTEXT, Order
from peagle_cli.train.self_distillation import write_data
from peagle_cli.train.vllm_writer import VllmWriter


@pytest.fixture(scope="module")
def folder(default_target: Path) -> Path:
    return default_target


@pytest.fixture(scope="module")
def writer(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[VllmWriter]:
    try:
        found = installation.find()
    except BadInputError as error:
        pytest.skip(f"without vLLM: {error.message}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PEAGLE_LOG_DIR", str(tmp_path_factory.mktemp("logs")))
        writer = VllmWriter(folder, found)
        yield writer
        writer.close()


def test_every_order_is_answered_once_and_sampling_is_repeatable(writer: VllmWriter, folder: Path) -> None:
    ids = Tokenizer.load(folder).encode("The capital of France is")
    orders = [Order(ids, 8, 0.0, 1), Order(ids, 3, 0.0, 2), Order(ids, 8, 1.0, 3), Order(ids, 8, 1.0, 3)]
    written = dict(writer.write(orders))
    assert sorted(written) == [0, 1, 2, 3]
    assert written[1] == written[0][:3]
    assert written[2] == written[3]


def test_long_sampled_texts_do_not_end_vllm(writer: VllmWriter, folder: Path) -> None:
    ids = Tokenizer.load(folder).encode("The capital of France is Paris. ") * 200
    orders = [Order(ids[: CONTEXT - 8 - i], 4, 1.0, i) for i in range(4)]  # more than one step's prompts
    assert sorted(dict(writer.write(orders))) == [0, 1, 2, 3]


def test_data_goes_on_where_it_was_stopped(writer: VllmWriter, folder: Path, tmp_path: Path) -> None:
    path, tokenizer = tmp_path / "data.jsonl", Tokenizer.load(folder)
    first = write_data(path, tokenizer, writer, ["Name a river."], 16, 16, lambda _: None)
    before = path.read_bytes()
    second = write_data(path, tokenizer, writer, ["Name a river."], 40, 16, lambda _: None)
    assert first.conversations < second.conversations
    assert second.answer_tokens >= 40
    assert path.read_bytes().startswith(before)


def test_a_model_that_vllm_does_not_load_is_told_with_its_log(tmp_path: Path, writer: VllmWriter) -> None:
    with pytest.raises(PeagleError, match="vLLM ended with exit code 1") as raised:
        VllmWriter(tmp_path / "nothing", installation.find())
    assert "Its log ends so" in raised.value.hint
