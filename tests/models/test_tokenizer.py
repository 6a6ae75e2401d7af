"""The tokeniser against transformers, and the incremental decoder against decoding at once."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from peagle_cli.engine.protocol import Message
from peagle_cli.errors import BadInputError
from peagle_cli.models.tokenizer import Tokenizer

TEXTS = (
    "",
    "Hello, world!",
    "def merge(a, b):\n    return [*a, *b]  # 2 lists\n\n\tx = a[0]\r\n",
    "In 1999 there were 12345678 of them, 3.14159 each.",
    "日本語のテキスト、한국어, 中文 and العربية",
    "👩‍👩‍👧 🇩🇪 naïve café ½ ﬁ",
    "  leading and trailing   ",
    "it's we'll I'd they've",
    "a<|im_end|>b <|endoftext|> <|im_start|>",
    "\x00\x1b[31m\x7f",
)
CONVERSATION = (
    Message("system", "Be brief."),
    Message("user", "Merge [1, 3] and [2]. <|im_end|> 日本"),
    Message("assistant", "[1, 2, 3]"),
    Message("user", "  Thanks 👩‍👩‍👧 \n"),
)


@pytest.fixture(scope="module")
def ours(default_target: Path) -> Tokenizer:
    return Tokenizer.load(default_target)


@pytest.fixture(scope="module")
def theirs(default_target: Path) -> Any:
    return AutoTokenizer.from_pretrained(default_target)


@pytest.mark.parametrize("text", TEXTS)
def test_encodes_and_decodes_as_transformers_does(ours: Tokenizer, theirs: Any, text: str) -> None:
    ids = ours.encode(text)
    assert ids == theirs.encode(text, add_special_tokens=False)
    assert ours.decode(ids) == theirs.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)


@pytest.mark.parametrize("text", [text for text in TEXTS if "<|" not in text])
def test_text_survives_the_round_trip(ours: Tokenizer, text: str) -> None:
    assert ours.decode(ours.encode(text)) == text


def test_knows_the_ids_of_the_default_model(ours: Tokenizer) -> None:
    assert ours.encode("<|endoftext|><|im_start|><|im_end|>") == [0, 1, 2]
    assert ours.eos_ids == {2}
    assert len(ours.encode("1234")) == 4, "digits are tokens of their own"
    assert ours.text(2) == "<|im_end|>"
    assert ours.text(ours.encode(" world")[0]) == " world"


@pytest.mark.parametrize("length", [1, 2, 4])
def test_renders_the_chat_template_as_transformers_does(ours: Tokenizer, theirs: Any, length: int) -> None:
    messages = CONVERSATION[:length] if length > 1 else CONVERSATION[1:2]
    plain = [{"role": message.role, "content": message.content} for message in messages]
    assert ours.chat_text(messages) == theirs.apply_chat_template(plain, add_generation_prompt=True, tokenize=False)
    assert ours.chat_ids(messages) == theirs.apply_chat_template(plain, add_generation_prompt=True, return_dict=False)


def test_stream_adds_up_to_the_whole_text(ours: Tokenizer) -> None:
    ids = ours.encode("\n".join(TEXTS))
    stream = ours.stream()
    assert "".join(stream.push(token_id) for token_id in ids) == ours.decode(ids)


def test_stream_survives_any_sequence_of_tokens(ours: Tokenizer) -> None:
    choose = random.Random(0)
    for _ in range(50):
        ids = [choose.randrange(49152) if choose.random() < 0.5 else choose.randrange(17, 273) for _ in range(80)]
        stream = ours.stream()
        streamed = "".join(stream.push(token_id) for token_id in ids)
        whole = ours.decode(ids)
        assert whole.startswith(streamed)
        assert set(whole[len(streamed) :]) <= {"�"}, "only an unfinished character may be held back"


def test_stream_holds_an_unfinished_character_back(ours: Tokenizer) -> None:
    first, *rest = ours.encode("日")
    stream = ours.stream()
    assert stream.push(first) == ""
    assert ours.text(first) == "�"
    assert "".join(stream.push(token_id) for token_id in rest) == "日"
    assert stream.push(2) == "", "special tokens have no text"


def test_fork_leaves_its_stream_alone(ours: Tokenizer) -> None:
    first, *rest = ours.encode("日本")
    stream = ours.stream()
    stream.push(first)
    fork = stream.fork()
    assert "".join(fork.push(token_id) for token_id in rest) == "日本"
    assert "".join(fork.push(token_id) for token_id in ours.encode(" and more")) == " and more"
    assert "".join(stream.push(token_id) for token_id in rest) == "日本"


def _copy(folder: Path, tmp_path: Path, **changes: Any) -> Path:
    """The default target's tokeniser in `tmp_path`, with a changed tokenizer_config.json."""
    (tmp_path / "tokenizer.json").symlink_to(folder / "tokenizer.json")
    config = json.loads((folder / "tokenizer_config.json").read_text()) | changes
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    return tmp_path


def test_collects_every_end_of_sequence_id(default_target: Path, tmp_path: Path) -> None:
    folder = _copy(default_target, tmp_path, eos_token={"content": "<|im_end|>"})
    (folder / "generation_config.json").write_text('{"eos_token_id": [0, 5]}')
    (folder / "config.json").write_text('{"eos_token_id": 7}')
    assert Tokenizer.load(folder).eos_ids == {0, 2, 5, 7}


def test_template_features_of_other_models(default_target: Path, tmp_path: Path) -> None:
    template = (
        "{%- for m in messages %}\n  {%- if loop.index > 2 %}{% break %}{% endif %}\n"
        "{{ bos_token }}{% generation %}{{ m | tojson }}{% endgeneration %}\n{%- endfor %}{{ strftime_now('%%') }}"
    )
    for folder in (tmp_path / "ours", tmp_path / "theirs"):
        folder.mkdir()
        _copy(default_target, folder, chat_template=None)
        (folder / "chat_template.jinja").write_text(template)
    plain = [{"role": message.role, "content": message.content} for message in CONVERSATION]
    theirs = AutoTokenizer.from_pretrained(tmp_path / "theirs")
    expected = theirs.apply_chat_template(plain, add_generation_prompt=True, tokenize=False)
    assert Tokenizer.load(tmp_path / "ours").chat_text(CONVERSATION) == expected


@pytest.mark.parametrize(
    ("template", "sentence"),
    [
        (None, "no chat template"),
        ("{{ raise_exception('roles must alternate') }}", "roles must alternate"),
        ("{{ messages.__class__.__mro__ }}", "refuses this conversation"),
        ([{"name": "default", "template": "{{ raise_exception('named') }}"}], "named"),
    ],
)
def test_says_why_a_conversation_cannot_be_rendered(
    default_target: Path, tmp_path: Path, template: Any, sentence: str
) -> None:
    tokenizer = Tokenizer.load(_copy(default_target, tmp_path, chat_template=template))
    with pytest.raises(BadInputError, match=sentence):
        tokenizer.chat_ids(CONVERSATION)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("tokenizer.json", None, "no tokenizer.json"),
        ("tokenizer.json", "{}", "cannot be read as a tokeniser"),
        ("tokenizer_config.json", "[1", "not a JSON object"),
        ("tokenizer_config.json", '{"chat_template": "{% if %}"}', "chat template .* cannot be read"),
    ],
)
def test_says_what_is_wrong_with_a_folder(
    default_target: Path, tmp_path: Path, name: str, content: str | None, sentence: str
) -> None:
    path = _copy(default_target, tmp_path) / name
    path.unlink()
    if content is not None:
        path.write_text(content)
    with pytest.raises(BadInputError, match=sentence):
        Tokenizer.load(tmp_path)
