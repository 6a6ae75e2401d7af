"""Turns a Llama-family GGUF file into a Hugging Face style folder: the one form that everything else reads.

The weights are de-quantised to bfloat16. Our engine, transformers and vLLM then run the same numbers from the same
files, and a reader of the code meets one way of loading a model instead of two.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import gguf
import numpy as np
import torch
from gguf.quants import dequantize
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from peagle_cli.errors import BadInputError
from peagle_cli.models.headers import SINGLE

_LAYER_TENSORS = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_MODEL_TENSORS = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
_HEADS = {"num_attention_heads": "head_count", "num_key_value_heads": "head_count_kv"}
_CONTROL_TOKEN = 3  # llama.cpp's token type for special tokens

_Array = np.ndarray[Any, Any]


class Q4Matrix(NamedTuple):
    """A matrix at 4 bits, in blocks of 32 along its input: w = `numbers` · `scales` + `minima`.

    `numbers` are uint8 [out, in], 0 to 15; `scales` and `minima` float16 [out, in / 32]: llama.cpp's Q4_1.
    """

    numbers: _Array
    scales: _Array
    minima: _Array


def convert(source: Path, folder: Path) -> None:
    """Write config.json, model.safetensors, tokenizer.json, tokenizer_config.json and generation_config.json.

    `folder` must exist. Raises `BadInputError` for a file that is not a Llama-family GGUF with a byte-level BPE.
    """
    reader = gguf.GGUFReader(source)
    fields = {name: field.contents() for name, field in reader.fields.items()}
    if fields.get("general.architecture") != "llama" or fields.get("tokenizer.ggml.model") != "gpt2":
        raise BadInputError(f"{source.name} is not a Llama-family GGUF with a byte-level BPE tokeniser.")
    tensors = {tensor.name.removesuffix(".weight"): tensor for tensor in reader.tensors}
    config = _config(fields, tied="output" not in tensors)
    _write_json(folder / "config.json", config)
    _write_json(folder / "generation_config.json", {k: config[k] for k in ("bos_token_id", "eos_token_id")})
    _write_json(folder / "tokenizer_config.json", _tokenizer_config(fields))
    _tokenizer(fields).save(str(folder / "tokenizer.json"))
    weights = {_hugging_face_name(name): _dequantise(tensor, config) for name, tensor in tensors.items()}
    save_file(weights, folder / SINGLE, metadata={"format": "pt"})


def q4_matrices(source: Path) -> dict[str, Q4Matrix]:
    """The matrices that the file keeps at 4 bits (Q4_1), by their names in Hugging Face's format."""
    reader = gguf.GGUFReader(source)
    heads = {name: reader.fields[f"llama.attention.{key}"].contents() for name, key in _HEADS.items()}
    return {
        _hugging_face_name(tensor.name.removesuffix(".weight")): _q4_matrix(_rows(tensor, heads))
        for tensor in reader.tensors
        if tensor.tensor_type == gguf.GGMLQuantizationType.Q4_1
    }


def _q4_matrix(rows: _Array) -> Q4Matrix:
    """Take apart rows of blocks: scale and minimum (float16), then 16 bytes, whose low halves come first."""
    blocks = rows.reshape(len(rows), -1, 20)
    scales, minima = np.moveaxis(np.ascontiguousarray(blocks[..., :4]).view(np.float16), -1, 0)
    numbers = np.concatenate([blocks[..., 4:] & 15, blocks[..., 4:] >> 4], -1)
    return Q4Matrix(numbers.reshape(len(rows), -1), scales, minima)


def _config(fields: dict[str, Any], *, tied: bool) -> dict[str, Any]:
    heads = fields["llama.attention.head_count"]
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": fields["llama.embedding_length"],
        "intermediate_size": fields["llama.feed_forward_length"],
        "num_hidden_layers": fields["llama.block_count"],
        "num_attention_heads": heads,
        "num_key_value_heads": fields["llama.attention.head_count_kv"],
        "head_dim": fields["llama.embedding_length"] // heads,
        "vocab_size": len(fields["tokenizer.ggml.tokens"]),
        "max_position_embeddings": fields["llama.context_length"],
        "rms_norm_eps": float(np.format_float_positional(np.float32(fields["llama.attention.layer_norm_rms_epsilon"]))),
        "rope_theta": fields["llama.rope.freq_base"],
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": tied,
        "bos_token_id": fields["tokenizer.ggml.bos_token_id"],
        "eos_token_id": fields["tokenizer.ggml.eos_token_id"],
        "pad_token_id": fields["tokenizer.ggml.padding_token_id"],
        "torch_dtype": "bfloat16",
    }


def _tokenizer(fields: dict[str, Any]) -> Tokenizer:
    tokens: list[str] = fields["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ", 1)) for merge in fields["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(models.BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=merges))
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    if fields["tokenizer.ggml.pre"] == "smollm":
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level])
    else:
        tokenizer.pre_tokenizer = byte_level
    tokenizer.decoder = decoders.ByteLevel()
    types = fields["tokenizer.ggml.token_type"]
    special = [token for token, kind in zip(tokens, types, strict=True) if kind == _CONTROL_TOKEN]
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    return tokenizer


def _tokenizer_config(fields: dict[str, Any]) -> dict[str, Any]:
    tokens = fields["tokenizer.ggml.tokens"]
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "add_prefix_space": False,
        "bos_token": tokens[fields["tokenizer.ggml.bos_token_id"]],
        "eos_token": tokens[fields["tokenizer.ggml.eos_token_id"]],
        "pad_token": tokens[fields["tokenizer.ggml.padding_token_id"]],
        "unk_token": tokens[fields["tokenizer.ggml.unknown_token_id"]],
        "model_max_length": fields["llama.context_length"],
        "chat_template": fields["tokenizer.chat_template"],
    }


def _hugging_face_name(name: str) -> str:
    if name in _MODEL_TENSORS:
        return f"{_MODEL_TENSORS[name]}.weight"
    _, layer, kind = name.split(".")
    return f"model.layers.{layer}.{_LAYER_TENSORS[kind]}.weight"


def _dequantise(tensor: gguf.ReaderTensor, config: dict[str, Any]) -> torch.Tensor:
    values = dequantize(_rows(tensor, config), tensor.tensor_type)
    return torch.tensor(values, dtype=torch.bfloat16)


def _rows(tensor: gguf.ReaderTensor, config: Mapping[str, Any]) -> _Array:
    """The bytes of a tensor, row by row, in Hugging Face's order."""
    if ".attn_q." in tensor.name:
        return _halves(tensor.data, config["num_attention_heads"])
    if ".attn_k." in tensor.name:
        return _halves(tensor.data, config["num_key_value_heads"])
    return tensor.data


def _halves(rows: _Array, heads: int) -> _Array:
    """Undo llama.cpp's order of a head's rows (rotary pairs interleaved) for Hugging Face's (first and second half)."""
    pairs = rows.reshape(heads, -1, 2, rows.shape[-1])
    return pairs.swapaxes(1, 2).reshape(rows.shape)


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
