"""What checkpoints must hold: targets, and drafters in vLLM's EAGLE-3 / P-EAGLE format, or in that of speculators.

Everything is checked against configuration and safetensors headers before a weight is loaded, and each mismatch is
told in one sentence. Shapes: H and T are the drafter's and the target's hidden sizes, Vd and V their vocabularies.
"""

import logging
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from peagle_cli.errors import BadInputError
from peagle_cli.models import speculators
from peagle_cli.models.config import LlamaConfig, parse_llama_config, read_json
from peagle_cli.models.headers import TensorHeader, read_headers
from peagle_cli.trace.events import METHOD_NAMES, Method

DRAFTER_ARCHITECTURE = "LlamaForCausalLMEagle3"

_FLOATS = ("F32", "F16", "BF16")
_UNKNOWN_FEATURES = ("attention_bias", "fc_norm", "norm_before_fc", "norm_output", "quantization_config")
"""Switches of the format that change the computation and that the embedded engine does not know."""

_OTHER_KIND = "Its config.json describes a model of another kind."

_log = logging.getLogger(__name__)

Shapes = dict[str, tuple[int, ...]]


class DrafterConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A drafter's shape.

    `aux_layers` are the target's layers whose input it reads, increasing; the number of the target's layers stands for
    the last one's output. `mask_token_id` is the token whose embedding mask slots share; a drafter that has one is a
    P-EAGLE drafter. `norm_before_residual` says whether layer 0's residual is its normed input.
    """

    llama: LlamaConfig
    draft_vocab_size: int
    aux_layers: tuple[int, ...]
    norm_before_residual: bool = False
    mask_token_id: int | None = None

    @property
    def method(self) -> Method:
        """The method that this drafter drafts by."""
        return _method(self.mask_token_id)

    @classmethod
    def read(cls, folder: Path, target: LlamaConfig) -> "DrafterConfig":
        """The configuration in `folder`, for use with `target`.

        Raises `BadInputError` when it is missing, unusable, not a drafter's, or asks for what the engine cannot do.
        """
        raw = _read_drafter(folder)
        eagle = _eagle_config(raw, folder)
        aux_layers = raw.get("eagle_aux_hidden_state_layer_ids") or eagle.get("eagle_aux_hidden_state_layer_ids")
        if aux_layers is None:
            layers = target.num_hidden_layers
            aux_layers = (2, layers // 2, layers - 3)
            _log.warning("%s does not name its auxiliary layers; vLLM's default %s is used.", folder, aux_layers)
        fields = {
            "draft_vocab_size": raw.get("draft_vocab_size") or raw.get("vocab_size"),
            "aux_layers": aux_layers,
            "norm_before_residual": bool(raw.get("norm_before_residual", False)),
            "mask_token_id": raw.get("ptd_token_id"),
        }
        try:
            return msgspec.convert({"llama": parse_llama_config(raw, folder), **fields}, cls)
        except msgspec.ValidationError as error:
            raise BadInputError(f"{folder / 'config.json'} is unusable: {error}.", "Download it again.") from error


def drafter_method(folder: Path) -> Method:
    """The method of the drafter in `folder`, from its configuration alone; raises `BadInputError` if it is none."""
    return _method(_read_drafter(folder).get("ptd_token_id"))


def check_drafter(folder: Path, config: DrafterConfig, target: LlamaConfig) -> None:
    """Raise `BadInputError` unless the checkpoint in `folder` is whole and drafts for `target`."""
    _check_sizes(folder, config, target)
    tensors = read_headers(folder)
    _check_extras_of_method(folder, config, tensors)
    _check_hidden_sizes(folder, config, target, tensors)
    optional = {"t2d": (target.vocab_size,), "embed_tokens.weight": (target.vocab_size, config.llama.hidden_size)}
    if config.method == "eagle3":
        optional["mask_hidden"] = ()
    _check_tensors(folder, tensors, _drafter_shapes(config, target), optional)
    if "d2t" in tensors:
        _check_draft_vocabulary(tensors["d2t"], target.vocab_size)


def check_target(folder: Path, config: LlamaConfig) -> None:
    """Raise `BadInputError` unless the checkpoint in `folder` is whole and one that the embedded engine runs."""
    if read_json(folder / "config.json").get("quantization_config"):
        raise BadInputError(
            f"The model in {folder} is quantised in a way that the embedded engine does not know.",
            "Choose its unquantised version.",
        )
    optional: Shapes = {"lm_head.weight": (config.vocab_size, config.hidden_size)}
    expected = _target_shapes(config)
    if not config.tie_word_embeddings:
        expected |= optional
    _check_tensors(folder, read_headers(folder), expected, optional)


def _method(mask_token_id: object) -> Method:
    return "eagle3" if mask_token_id is None else "peagle"


def _read_drafter(folder: Path) -> dict[str, Any]:
    """The configuration of the drafter in `folder`, in vLLM's form. Raises `BadInputError` for any other."""
    raw = read_json(folder / "config.json")
    if speculators.MARK in raw:
        raw = speculators.as_vllm(raw, folder, DRAFTER_ARCHITECTURE)
    _check_is_known_drafter(raw, folder)
    return raw


def _check_is_known_drafter(raw: Mapping[str, Any], folder: Path) -> None:
    if DRAFTER_ARCHITECTURE not in (raw.get("architectures") or []):
        found = " or ".join(map(str, raw.get("architectures") or ["checkpoint of unnamed architecture"]))
        raise BadInputError(
            f"{folder} holds a {found}, not an EAGLE-3 or P-EAGLE drafter.", f"A drafter is a {DRAFTER_ARCHITECTURE}."
        )
    settings = {**raw, **_eagle_config(raw, folder)}
    unknown = [name for name in _UNKNOWN_FEATURES if settings.get(name)]
    if settings.get("use_aux_hidden_state", True) is False:
        unknown.append("use_aux_hidden_state: false")
    if unknown:
        raise BadInputError(
            f"The drafter in {folder} uses {unknown[0]}, which the embedded engine does not know.",
            "Run it in vLLM, or choose another drafter.",
        )


def _eagle_config(raw: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    eagle = raw.get("eagle_config") or {}
    if not isinstance(eagle, dict):
        raise BadInputError(f"{folder / 'config.json'} is unusable: eagle_config is no object.", "Download it again.")
    return eagle


def _check_sizes(folder: Path, config: DrafterConfig, target: LlamaConfig) -> None:
    """What the two configurations alone can tell."""
    vocab_size, layers = target.vocab_size, target.num_hidden_layers
    problem = ""
    if config.llama.vocab_size != vocab_size:
        problem = f"is for a vocabulary of {config.llama.vocab_size:,} tokens, and the target's has {vocab_size:,}"
    elif not 0 < config.draft_vocab_size <= vocab_size:
        problem = f"drafts from {config.draft_vocab_size:,} tokens, and the target knows {vocab_size:,}"
    elif not config.aux_layers or not all(0 <= layer <= layers for layer in config.aux_layers):
        problem = f"reads the target's layers {_listed(config.aux_layers)}, and the target has {layers}"
    elif list(config.aux_layers) != sorted(set(config.aux_layers)):
        problem = f"names its auxiliary layers out of order or twice: {_listed(config.aux_layers)}"
    elif config.mask_token_id is not None and not 0 <= config.mask_token_id < vocab_size:
        problem = f"has the mask token {config.mask_token_id}, and the target's vocabulary ends at {vocab_size - 1}"
    if problem:
        raise BadInputError(f"The drafter in {folder} {problem}.", "It was made for another model.")


def _check_extras_of_method(folder: Path, config: DrafterConfig, tensors: Mapping[str, TensorHeader]) -> None:
    """The tensors that the method and the size of the draft vocabulary ask for, or forbid."""
    whole = config.draft_vocab_size == config.llama.vocab_size
    problem = ""
    if config.method == "peagle" and "mask_hidden" not in tensors:
        problem = "names a mask token (ptd_token_id) and has no mask_hidden"
    elif whole and "d2t" in tensors:
        problem = "drafts from the whole vocabulary and still has a table of draft tokens (d2t)"
    elif not whole and "d2t" not in tensors:
        problem = f"drafts from {config.draft_vocab_size:,} tokens without a table (d2t) that says which"
    if problem:
        raise BadInputError(
            f"The {METHOD_NAMES[config.method]} drafter in {folder} {problem}.", "Export or download it again."
        )


def _check_hidden_sizes(
    folder: Path, config: DrafterConfig, target: LlamaConfig, tensors: Mapping[str, TensorHeader]
) -> None:
    """The drafter reads the target's hidden states, and its embeddings unless it has its own."""
    own, theirs, states = config.llama.hidden_size, target.hidden_size, len(config.aux_layers)
    problem = ""
    fc = tensors["fc.weight"].shape if "fc.weight" in tensors else ()
    if len(fc) == 2 and fc[1] != states * theirs:
        problem = f"reads {fc[1]} channels of hidden states, and {states} states of the target have {states * theirs}"
    elif own != theirs and "embed_tokens.weight" not in tensors:
        problem = f"has hidden size {own} and no embeddings of its own, and the target's have size {theirs}"
    if problem:
        raise BadInputError(f"The drafter in {folder} {problem}.", "It was made for another model.")


def _check_tensors(folder: Path, tensors: Mapping[str, TensorHeader], expected: Shapes, optional: Shapes) -> None:
    """Every expected tensor is there, nothing else but optional ones is, and all have the right shape and dtype."""
    if missing := sorted(expected.keys() - tensors.keys()):
        raise BadInputError(f"{folder} has no tensor {missing[0]}{_and_more(missing)}.", _OTHER_KIND)
    if extra := sorted(tensors.keys() - expected.keys() - optional.keys()):
        raise BadInputError(
            f"{folder} has a tensor that the embedded engine has no use for: {extra[0]}{_and_more(extra)}.",
            _OTHER_KIND,
        )
    for name, shape in {**optional, **expected}.items():
        if name in tensors:
            _check_tensor(folder, name, tensors[name], shape)


def _check_tensor(folder: Path, name: str, tensor: TensorHeader, shape: tuple[int, ...]) -> None:
    flat = name == "mask_hidden"  # its shape differs between exporters, its number of elements does not
    if shape and (math.prod(tensor.shape) != math.prod(shape) if flat else tensor.shape != shape):
        raise BadInputError(
            f"{name} in {folder} is {_by(tensor.shape)}, where {_by(shape)} was expected.",
            "It belongs to a model of another size.",
        )
    wanted = {"d2t": ("I64", "I32"), "t2d": ("BOOL",)}.get(name, _FLOATS)
    if tensor.dtype not in wanted:
        raise BadInputError(
            f"{name} in {folder} is stored as {tensor.dtype}, and {' or '.join(wanted)} was expected.",
            "Choose a checkpoint that is not quantised.",
        )


def _check_draft_vocabulary(d2t: TensorHeader, vocab_size: int) -> None:
    """Draft id i is target id i + d2t[i]: each must exist, once."""
    with d2t.file.open("rb") as file:
        file.seek(d2t.start)
        offsets = np.frombuffer(file.read(d2t.stop - d2t.start), "<i8" if d2t.dtype == "I64" else "<i4")
    ids = offsets + np.arange(len(offsets))
    if ids.min() < 0 or ids.max() >= vocab_size or len(np.unique(ids)) != len(ids):
        raise BadInputError(
            f"The table of draft tokens (d2t) in {d2t.file} names tokens that the target does not have, or one twice.",
            "It must hold offsets: draft token i is the target's i + d2t[i].",
        )


def _drafter_shapes(config: DrafterConfig, target: LlamaConfig) -> Shapes:
    hidden = config.llama.hidden_size
    aux = len(config.aux_layers) * target.hidden_size
    shapes: Shapes = {
        "fc.weight": (hidden, aux),
        "layers.0.hidden_norm.weight": (hidden,),
        "norm.weight": (hidden,),
        "lm_head.weight": (config.draft_vocab_size, hidden),
    }
    for layer in range(config.llama.num_hidden_layers):
        shapes |= _layer_shapes(f"layers.{layer}", config.llama, inputs=hidden if layer else 2 * hidden)
    if config.method == "peagle":
        shapes["mask_hidden"] = (aux,)
    if config.draft_vocab_size != target.vocab_size:
        shapes["d2t"] = (config.draft_vocab_size,)
    return shapes


def _target_shapes(config: LlamaConfig) -> Shapes:
    shapes: Shapes = {
        "model.embed_tokens.weight": (config.vocab_size, config.hidden_size),
        "model.norm.weight": (config.hidden_size,),
    }
    for layer in range(config.num_hidden_layers):
        shapes |= _layer_shapes(f"model.layers.{layer}", config, inputs=config.hidden_size)
    return shapes


def _layer_shapes(name: str, config: LlamaConfig, *, inputs: int) -> Shapes:
    """The tensors of one Llama layer whose attention reads `inputs` channels."""
    hidden, intermediate = config.hidden_size, config.intermediate_size
    queries, keys = config.num_attention_heads * config.head_dim, config.num_key_value_heads * config.head_dim
    return {
        f"{name}.input_layernorm.weight": (hidden,),
        f"{name}.self_attn.q_proj.weight": (queries, inputs),
        f"{name}.self_attn.k_proj.weight": (keys, inputs),
        f"{name}.self_attn.v_proj.weight": (keys, inputs),
        f"{name}.self_attn.o_proj.weight": (hidden, queries),
        f"{name}.post_attention_layernorm.weight": (hidden,),
        f"{name}.mlp.gate_proj.weight": (intermediate, hidden),
        f"{name}.mlp.up_proj.weight": (intermediate, hidden),
        f"{name}.mlp.down_proj.weight": (hidden, intermediate),
    }


def _listed(numbers: tuple[int, ...]) -> str:
    return ", ".join(map(str, numbers))


def _by(shape: tuple[int, ...]) -> str:
    return " × ".join(map(str, shape)) or "a single number"


def _and_more(names: list[str]) -> str:
    return f" (and {len(names) - 1} more)" if len(names) > 1 else ""
