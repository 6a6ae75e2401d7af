"""Trained drafters in the form that vLLM loads, out and in.

The inputs of `fc` are scaled per channel in training; the scale is folded into `fc.weight` and taken out of
`mask_hidden` here, so that what is exported reads the target's states as they are.
"""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from peagle_cli.errors import BadInputError
from peagle_cli.models.checkpoint import DRAFTER_ARCHITECTURE
from peagle_cli.models.headers import SINGLE
from peagle_cli.train.disk import save_tensors, save_text
from peagle_cli.train.model import Layer, Shape, TrainableDrafter

_LAYER_NAMES = {
    "q": "self_attn.q_proj",
    "k": "self_attn.k_proj",
    "v": "self_attn.v_proj",
    "o": "self_attn.o_proj",
    "gate": "mlp.gate_proj",
    "up": "mlp.up_proj",
    "down": "mlp.down_proj",
    "input_norm": "input_layernorm",
    "mlp_norm": "post_attention_layernorm",
    "hidden_norm": "hidden_norm",
}


@torch.no_grad()
def export(drafter: TrainableDrafter, folder: Path) -> None:
    """Write config.json and model.safetensors (bfloat16), each in one piece, the weights first.

    Raises `PeagleError` when the disk does not take them.
    """
    tensors = {"fc.weight": drafter.fc / drafter.scale, "norm.weight": drafter.norm, "lm_head.weight": drafter.lm_head}
    for i, layer in enumerate(drafter.layer_list):
        tensors |= {f"layers.{i}.{name}": tensor for name, tensor in _layer_tensors(layer).items()}
    if drafter.mask_hidden is not None:
        tensors["mask_hidden"] = (drafter.mask_hidden * drafter.scale).view(1, 1, -1)
    tensors = {name: tensor.to("cpu", torch.bfloat16) for name, tensor in tensors.items()}
    # An offset, not an id: draft token i is target token i + d2t[i].
    tensors["d2t"] = drafter.draft_ids.cpu() - torch.arange(len(drafter.draft_ids))
    save_tensors(tensors, folder / SINGLE, {"format": "pt"})
    save_text(json.dumps(_config(drafter.shape), indent=2) + "\n", folder / "config.json")


@torch.no_grad()
def load_weights(drafter: TrainableDrafter, folder: Path) -> None:
    """Start `drafter` from an exported one of the same sizes. Layers and vectors that the other lacks stay as they are.

    Raises `BadInputError` when there is none, or its sizes differ.
    """
    with _open(folder) as file:
        names = set(file.keys())
        wanted: dict[str, Tensor] = {"norm.weight": drafter.norm, "lm_head.weight": drafter.lm_head}
        for i, layer in enumerate(drafter.layer_list):
            own = {f"layers.{i}.{name}": tensor for name, tensor in _layer_tensors(layer).items()}
            wanted |= own if f"layers.{i}.self_attn.q_proj.weight" in names else {}
        for name, tensor in wanted.items():
            tensor.copy_(_tensor(file, folder, name, tensor.shape))
        drafter.fc.copy_(_tensor(file, folder, "fc.weight", drafter.fc.shape) * drafter.scale.cpu())
        if drafter.mask_hidden is not None and "mask_hidden" in names:
            drafter.mask_hidden.copy_(file.get_tensor("mask_hidden").flatten() / drafter.scale.cpu())


def read_draft_ids(folder: Path) -> Tensor:
    """The target ids [Vd] of an exported drafter's vocabulary. Raises as `load_weights`."""
    with _open(folder) as file:
        offsets: Tensor = file.get_tensor("d2t")
        return offsets + torch.arange(len(offsets))


def has_mask_slots(folder: Path) -> bool:
    """Whether an exported drafter is a P-EAGLE drafter. Raises as `load_weights`."""
    with _open(folder) as file:
        return "mask_hidden" in file.keys()  # noqa: SIM118 (not a mapping)


def _open(folder: Path) -> Any:
    path = folder / SINGLE
    try:
        file: Any = safe_open(path, framework="pt")
    except (OSError, SafetensorError) as error:
        raise _no_drafter(folder) from error
    if "d2t" not in file.keys():  # noqa: SIM118 (not a mapping)
        raise _no_drafter(folder)
    return file


def _no_drafter(folder: Path) -> BadInputError:
    return BadInputError(
        f"{folder} holds no drafter with a vocabulary of its own.", "Name a folder that `peagle train run` exported to."
    )


def _tensor(file: Any, folder: Path, name: str, shape: torch.Size) -> Tensor:
    tensor: Tensor | None = file.get_tensor(name) if name in file.keys() else None  # noqa: SIM118 (not a mapping)
    if tensor is None or tensor.shape != shape:
        found = "nothing" if tensor is None else "×".join(map(str, tensor.shape))
        raise BadInputError(
            f"The drafter in {folder} cannot be a start: {name} is {found}, not {'×'.join(map(str, shape))}.",
            "Choose the sizes that it was trained with.",
        )
    return tensor


def _layer_tensors(layer: Layer) -> dict[str, Tensor]:
    return {f"{_LAYER_NAMES[name]}.weight": parameter for name, parameter in layer.named_parameters()}


def _config(shape: Shape) -> dict[str, Any]:
    llama = shape.llama
    config: dict[str, Any] = {
        "architectures": [DRAFTER_ARCHITECTURE],
        "model_type": "llama",
        "hidden_size": llama.hidden_size,
        "intermediate_size": llama.intermediate_size,
        "num_hidden_layers": llama.num_hidden_layers,
        "num_attention_heads": llama.num_attention_heads,
        "num_key_value_heads": llama.num_key_value_heads,
        "head_dim": llama.head_dim,
        "vocab_size": llama.vocab_size,
        "draft_vocab_size": shape.draft_vocab,
        "max_position_embeddings": llama.max_position_embeddings,
        "rms_norm_eps": llama.rms_norm_eps,
        "rope_theta": llama.rope_theta,
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        "eagle_config": {
            "eagle_aux_hidden_state_layer_ids": list(shape.aux_layers),
            "use_aux_hidden_state": True,
        },
    }
    if llama.rope_scaling is not None:
        scaling = llama.rope_scaling
        config["rope_scaling"] = {"rope_type": "llama3", **{f: getattr(scaling, f) for f in scaling.__struct_fields__}}
    if shape.mask_token is not None:
        config["ptd_token_id"] = shape.mask_token
    return config
