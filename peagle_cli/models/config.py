"""The shape of a Llama-family target, as its `config.json` tells it."""

from pathlib import Path
from typing import Any

import msgspec

from peagle_cli.errors import BadInputError

SUPPORTED_ARCHITECTURES = ("LlamaForCausalLM",)


class Llama3Scaling(msgspec.Struct, frozen=True):
    """The long-context stretching of rotary frequencies that Llama 3.1 introduced."""

    factor: float
    low_freq_factor: float
    high_freq_factor: float
    original_max_position_embeddings: int


class LlamaConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The sizes and constants of a Llama-family model, with the names of Hugging Face's `config.json`."""

    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    vocab_size: int
    max_position_embeddings: int
    rms_norm_eps: float
    rope_theta: float
    rope_scaling: Llama3Scaling | None = None
    tie_word_embeddings: bool = False

    @classmethod
    def read(cls, folder: Path) -> "LlamaConfig":
        """The configuration in `folder`; raises `BadInputError` when it is missing, broken or not a Llama."""
        raw = read_json(folder / "config.json")
        _check_architecture(raw, folder)
        return parse_llama_config(raw, folder)


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file; `BadInputError` says what is wrong with one that has none."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except OSError as error:
        raise BadInputError(f"{path} cannot be read: {error.strerror}.", "Name a model's folder.") from error
    except msgspec.MsgspecError as error:
        raise BadInputError(f"{path} is not a JSON object: {error}.", "Download the model again.") from error


def _check_architecture(raw: dict[str, Any], folder: Path) -> None:
    architectures = raw.get("architectures") or []
    if not set(architectures) & set(SUPPORTED_ARCHITECTURES):
        raise BadInputError(
            f"{folder.name} is a {' or '.join(map(str, architectures)) or 'model of unnamed architecture'}, "
            f"and the embedded engine runs {' or '.join(SUPPORTED_ARCHITECTURES)} only.",
            "Choose a Llama-family model such as SmolLM2, TinyLlama or Llama 3.",
        )


def parse_llama_config(raw: dict[str, Any], folder: Path) -> LlamaConfig:
    """What Hugging Face's Llama configuration says, its defaults filled in. `folder` is for messages only."""
    rope = {"rope_theta": 10000.0, **raw, **(raw.get("rope_parameters") or {})}
    filled = {
        "num_key_value_heads": raw.get("num_attention_heads"),
        "head_dim": _head_dim(raw),
        **{key: value for key, value in raw.items() if value is not None},
        "rope_theta": rope["rope_theta"],
        "rope_scaling": _rope_scaling(raw.get("rope_scaling") or raw.get("rope_parameters"), folder),
    }
    try:
        return msgspec.convert(filled, LlamaConfig, strict=False)
    except msgspec.ValidationError as error:
        raise BadInputError(f"{folder.name}/config.json is unusable: {error}.", "Download the model again.") from error


def _head_dim(raw: dict[str, Any]) -> Any:
    hidden, heads = raw.get("hidden_size"), raw.get("num_attention_heads")
    return hidden // heads if isinstance(hidden, int) and isinstance(heads, int) and heads > 0 else None


def _rope_scaling(raw: dict[str, Any] | None, folder: Path) -> dict[str, Any] | None:
    kind = (raw or {}).get("rope_type", (raw or {}).get("type", "default"))
    if raw is None or kind == "default":
        return None
    if kind != "llama3":
        raise BadInputError(
            f"{folder.name} stretches its rotary embeddings by {kind!r}, which the embedded engine does not know.",
            "Choose a model with plain or llama3 rotary embeddings.",
        )
    return raw
