"""Text to token ids and back: the model's own tokeniser and chat template, without importing transformers."""

import copy
import datetime
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn, Protocol, Self

import jinja2
import tokenizers
from jinja2.ext import Extension
from jinja2.ext import loopcontrols as LoopControls
from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers.decoders import DecodeStream

from peagle_cli.errors import BadInputError
from peagle_cli.models.config import read_json


class ChatMessage(Protocol):
    """One turn of a conversation; `role` is "system", "user" or "assistant"."""

    @property
    def role(self) -> str:
        """Who said it."""
        ...

    @property
    def content(self) -> str:
        """What was said."""
        ...


class TokenStream:
    """Decodes a reply token by token, without looking at earlier tokens again."""

    def __init__(self, tokenizer: tokenizers.Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._decoder = DecodeStream(skip_special_tokens=True)

    def push(self, token_id: int) -> str:
        """The text that `token_id` adds to the stream: "" for special tokens and inside an unfinished character.

        All pushes joined equal the whole reply decoded at once, but for a character still unfinished at its end.
        """
        return self._decoder.step(self._tokenizer, token_id) or ""

    def fork(self) -> "TokenStream":
        """An independent stream that goes on from here: for decoding drafts that may be rejected."""
        fork = copy.copy(self)
        fork._decoder = copy.copy(self._decoder)
        return fork


class Tokenizer:
    """A model's tokeniser, with its chat template and the ids that end a reply."""

    def __init__(
        self,
        backend: tokenizers.Tokenizer,
        chat_template: str | None,
        special_tokens: dict[str, str],
        eos_ids: frozenset[int],
    ) -> None:
        self._backend = backend
        self._template = _environment().from_string(chat_template) if chat_template else None
        self._special_tokens = special_tokens
        self.eos_ids = eos_ids

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read `tokenizer.json` and what belongs to it from a model folder.

        Raises `BadInputError` when a file is missing or cannot be read.
        """
        path = folder / "tokenizer.json"
        if not path.is_file():
            raise BadInputError(f"{folder} has no tokenizer.json.", "The model's tokeniser must be in that format.")
        try:
            backend = tokenizers.Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises plain Exception for malformed files
            raise BadInputError(f"{path} cannot be read as a tokeniser: {error}.") from error
        config = _json_if_present(folder / "tokenizer_config.json")
        special_tokens = _special_tokens(config)
        eos_ids = _eos_ids(folder, backend.token_to_id(special_tokens.get("eos_token", "")))
        try:
            return cls(backend, _chat_template(folder, config), special_tokens, eos_ids)
        except jinja2.TemplateSyntaxError as error:
            raise BadInputError(f"The chat template in {folder} cannot be read: {error.message}.") from error

    def encode(self, text: str) -> list[int]:
        """The ids of `text`, nothing added. The names of special tokens in it become those tokens."""
        return self._backend.encode(text, add_special_tokens=False).ids

    def decode(self, ids: Sequence[int]) -> str:
        """The text of `ids`, special tokens left out."""
        return self._backend.decode(list(ids), skip_special_tokens=True)

    def chat_text(self, messages: Sequence[ChatMessage]) -> str:
        """The conversation in the model's chat template, ready for the assistant to speak.

        Raises `BadInputError` when the model has no template or its template refuses the conversation.
        """
        if self._template is None:
            raise BadInputError("This model has no chat template.", "Choose an instruction-tuned model.")
        try:
            return self._template.render(
                messages=[{"role": message.role, "content": message.content} for message in messages],
                add_generation_prompt=True,
                **self._special_tokens,
            )
        except jinja2.TemplateError as error:
            raise BadInputError(
                f"The model's chat template refuses this conversation: {str(error).rstrip('.')}."
            ) from error

    def chat_ids(self, messages: Sequence[ChatMessage]) -> list[int]:
        """The ids of the conversation in the model's chat template, ready for the assistant to speak.

        The rendered text is encoded as a whole, as `transformers` does by default, so a special token's name inside
        a message ("<|im_end|>") becomes that token too: whoever writes the messages can write the template's marks.
        Raises `BadInputError` as `chat_text` does.
        """
        return self.encode(self.chat_text(messages))

    def stream(self) -> TokenStream:
        """A decoder for a reply that begins."""
        return TokenStream(self._backend)

    def text(self, token_id: int) -> str:
        """One token alone as text: special tokens by name, an unfinished character as "�".

        It is the text a second occurrence adds behind a first, so that a leading space survives in vocabularies that
        drop it at the start of a text.
        """
        once = self._backend.decode([token_id], skip_special_tokens=False)
        twice = self._backend.decode([token_id, token_id], skip_special_tokens=False)
        return twice[len(once) :]


class _GenerationTag(Extension):
    """`{% generation %}…{% endgeneration %}` marks assistant text for training; here its body is just rendered."""

    tags = {"generation"}  # noqa: RUF012  (jinja2 declares it so)

    def parse(self, parser: jinja2.parser.Parser) -> jinja2.nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return jinja2.nodes.Scope(body, lineno=line)


def _environment() -> ImmutableSandboxedEnvironment:
    """The Jinja environment that chat templates are written for: that of `transformers`, sandboxed."""

    def raise_exception(message: str) -> NoReturn:
        raise jinja2.TemplateError(message)

    def strftime_now(form: str) -> str:
        return datetime.datetime.now().strftime(form)

    def tojson(
        value: Any,
        ensure_ascii: bool = False,
        indent: int | None = None,
        separators: tuple[str, str] | None = None,
        sort_keys: bool = False,
    ) -> str:
        # Jinja's own filter escapes for HTML.
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_GenerationTag, LoopControls]
    )
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = strftime_now
    return environment


def _json_if_present(path: Path) -> dict[str, Any]:
    return read_json(path) if path.is_file() else {}


def _special_tokens(config: dict[str, Any]) -> dict[str, str]:
    """The special tokens that templates may name (`bos_token`, `eos_token`, …), from a tokenizer_config.json."""
    tokens = {}
    for role in ("bos", "eos", "unk", "sep", "pad", "cls", "mask"):
        token = config.get(f"{role}_token")
        if isinstance(token, dict):  # an AddedToken in full
            token = token.get("content")
        if isinstance(token, str):
            tokens[f"{role}_token"] = token
    return tokens


def _chat_template(folder: Path, config: dict[str, Any]) -> str | None:
    """The chat template: in newer checkpoints a file of its own, else in tokenizer_config.json, alone or by name."""
    path = folder / "chat_template.jinja"
    if path.is_file():
        return path.read_text(encoding="utf-8")
    template = config.get("chat_template")
    if isinstance(template, list):
        template = next((entry["template"] for entry in template if entry.get("name") == "default"), None)
    return template if isinstance(template, str) else None


def _eos_ids(folder: Path, own: int | None) -> frozenset[int]:
    """Every id that ends a reply: those of generation_config.json and config.json, and the tokeniser's own."""
    ids = set() if own is None else {own}
    for name in ("generation_config.json", "config.json"):
        eos = _json_if_present(folder / name).get("eos_token_id")
        ids.update([eos] if isinstance(eos, int) else eos or [])
    return frozenset(ids)
