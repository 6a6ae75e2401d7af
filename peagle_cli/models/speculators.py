"""The configuration that the speculators library (0.9) writes for its EAGLE-3 and P-EAGLE drafters, as vLLM's own.

There the drafter's layers are described by themselves, in `transformer_layer_config`; tensors have the same names and
shapes in both forms. Which of its switches mean what is vLLM's reading (`transformers_utils/configs/speculators`).
"""

from pathlib import Path
from typing import Any

from peagle_cli.errors import BadInputError

MARK = "speculators_model_type"
"""The key that only its configurations have."""

_KINDS = ("eagle3", "peagle")
_SWITCHES = ("draft_vocab_size", "eagle_aux_hidden_state_layer_ids", "fc_norm", "norm_before_fc", "norm_output")
_LLAMA_DEFAULTS: dict[str, Any] = {
    "vocab_size": 32000,
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-6,
}
"""Of transformers' `LlamaConfig`: what equals them may be left out of a `transformer_layer_config`."""


def as_vllm(raw: dict[str, Any], folder: Path, architecture: str) -> dict[str, Any]:
    """The configuration `raw` in vLLM's form, as a drafter of `architecture`. `folder` is for messages only.

    Raises `BadInputError` for what is unusable, or is another kind of drafter or of layers.
    """
    kind, layers = raw[MARK], raw.get("transformer_layer_config")
    if kind not in _KINDS:
        raise BadInputError(
            f"{folder} holds a {kind} drafter of the speculators library, not EAGLE-3 or P-EAGLE.",
            "Run it in vLLM, or choose another drafter.",
        )
    if not isinstance(layers, dict):
        raise BadInputError(
            f"{folder / 'config.json'} is unusable: transformer_layer_config is no object.", "Download it again."
        )
    if problem := _layers_unknown(layers):
        raise BadInputError(
            f"The drafter in {folder} {problem}, which the embedded engine does not know.",
            "Run it in vLLM, or choose another drafter.",
        )
    config = {**_LLAMA_DEFAULTS, **layers, "architectures": [architecture]}
    config |= {name: raw[name] for name in _SWITCHES if raw.get(name) is not None}
    config["norm_before_residual"] = raw.get("norm_before_residual", kind == "eagle3")
    if kind == "peagle":
        if raw.get("mask_token_id") is None:
            raise BadInputError(f"The P-EAGLE drafter in {folder} names no mask_token_id.", "Export it again.")
        config["ptd_token_id"] = raw["mask_token_id"]
    return config


def _layers_unknown(layers: dict[str, Any]) -> str:
    """What the layers have that those of a Llama have not; "" for nothing."""
    kind = layers.get("model_type", "llama")
    if kind != "llama":
        return f"has layers of {kind}"
    if "sliding_attention" in (layers.get("layer_types") or []):
        return "has layers that see a sliding window only"
    return "has biases in its feed-forward halves" if layers.get("mlp_bias") else ""
