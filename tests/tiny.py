"""A random Llama and random drafters for it, in the formats that real ones have: small enough to load in no time.

The vocabulary and the tokeniser are the default target's; what the model says is noise, control characters included.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from peagle_cli.trace.events import Method

HIDDEN, INNER, LAYERS, HEAD = 32, 64, 4, 16
VOCAB, DRAFT_VOCAB = 49152, 512
CONTEXT = 4096
AUX_LAYERS = [1, 2, 4]

LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": HIDDEN,
    "intermediate_size": INNER,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HIDDEN // HEAD,
    "num_key_value_heads": 1,
    "head_dim": HEAD,
    "vocab_size": VOCAB,
    "max_position_embeddings": CONTEXT,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "tie_word_embeddings": True,
}
DRAFTER = LLAMA | {
    "architectures": ["LlamaForCausalLMEagle3"],
    "num_hidden_layers": 1,
    "draft_vocab_size": DRAFT_VOCAB,
    "tie_word_embeddings": False,
    "eagle_config": {"eagle_aux_hidden_state_layer_ids": AUX_LAYERS, "use_aux_hidden_state": True},
}

Tensors = dict[str, np.ndarray[Any, Any]]


def write_target(folder: Path, tokenizer: Path) -> Path:
    """Write the target, with the tokeniser of the model in the folder `tokenizer`."""
    random = np.random.default_rng(1)
    tensors = {"model.embed_tokens.weight": _matrix(random, VOCAB, HIDDEN), "model.norm.weight": _ones()}
    for i in range(LAYERS):
        tensors |= _layer(random, f"model.layers.{i}", HIDDEN)
    _write(folder, LLAMA, tensors)
    for file in tokenizer.glob("tokenizer*.json"):
        shutil.copy(file, folder)
    return folder


def write_drafter(folder: Path, method: Method) -> Path:
    """Write a drafter of the kind that `method` needs."""
    random = np.random.default_rng(2)
    tensors = _layer(random, "layers.0", 2 * HIDDEN) | {
        "layers.0.hidden_norm.weight": _ones(),
        "fc.weight": _matrix(random, HIDDEN, len(AUX_LAYERS) * HIDDEN),
        "norm.weight": _ones(),
        "lm_head.weight": _matrix(random, DRAFT_VOCAB, HIDDEN),
        "d2t": 3 * np.arange(DRAFT_VOCAB),  # draft token i is the target's 4 i
    }
    config = DRAFTER
    if method == "peagle":
        config = DRAFTER | {"ptd_token_id": 3}
        tensors["mask_hidden"] = _matrix(random, 1, len(AUX_LAYERS) * HIDDEN)
    _write(folder, config, tensors)
    return folder


def _layer(random: np.random.Generator, name: str, inputs: int) -> Tensors:
    shapes = {
        "self_attn.q_proj": (HIDDEN, inputs),
        "self_attn.k_proj": (HEAD, inputs),
        "self_attn.v_proj": (HEAD, inputs),
        "self_attn.o_proj": (HIDDEN, HIDDEN),
        "mlp.gate_proj": (INNER, HIDDEN),
        "mlp.up_proj": (INNER, HIDDEN),
        "mlp.down_proj": (HIDDEN, INNER),
    }
    matrices = {f"{name}.{part}.weight": _matrix(random, *shape) for part, shape in shapes.items()}
    return matrices | {f"{name}.{norm}.weight": _ones() for norm in ("input_layernorm", "post_attention_layernorm")}


def _matrix(random: np.random.Generator, rows: int, columns: int) -> np.ndarray[Any, Any]:
    matrix: np.ndarray[Any, Any] = random.standard_normal((rows, columns)) / np.sqrt(columns)
    return matrix.astype(np.float32)


def _ones() -> np.ndarray[Any, Any]:
    return np.ones(HIDDEN, np.float32)


def _write(folder: Path, config: dict[str, Any], tensors: Tensors) -> None:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config))
    save_file(tensors, folder / "model.safetensors")
