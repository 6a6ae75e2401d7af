"""Drafters in the form that the speculators library writes."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from peagle_cli.engine.protocol import EngineSpec, LaneSetting, Request
from peagle_cli.engine.torch.engine import TorchEngine
from peagle_cli.errors import BadInputError
from peagle_cli.models.checkpoint import DrafterConfig, check_drafter, drafter_method
from peagle_cli.models.config import LlamaConfig
from peagle_cli.trace.events import DraftBatch, Message, Method, Sampling
from tests import tiny


def as_speculators(folder: Path, method: Method, change: Callable[[dict[str, Any]], Any] = lambda _: None) -> Path:
    """The drafter in `folder` as version 0.9.0 of the library saves its own: keys and values are as it wrote them."""
    config: dict[str, Any] = {
        "architectures": ["PEagleDraftModel" if method == "peagle" else "Eagle3DraftModel"],
        "auto_map": {"": "config.PEagleSpeculatorConfig"},
        "draft_vocab_size": tiny.DRAFT_VOCAB,
        "dtype": "float32",
        "eagle_aux_hidden_state_layer_ids": tiny.AUX_LAYERS,
        "embed_requires_grad": method == "peagle",
        "fc_norm": False,
        "norm_before_fc": False,
        "norm_before_residual": False,
        "norm_output": False,
        "speculators_config": {
            "algorithm": method,
            "default_proposal_method": "greedy",
            "proposal_methods": [
                {"accept_tolerance": 0.0, "proposal_type": "greedy", "speculative_tokens": 3, "verifier_accept_k": 1}
            ],
            "verifier": {"architectures": ["LlamaForCausalLM"], "name_or_path": None},
        },
        "speculators_model_type": method,
        "speculators_version": "0.9.0",
        "target_hidden_size": None,
        "tie_word_embeddings": False,
        "transformer_layer_config": {
            "attention_bias": False,
            "attention_dropout": 0.0,
            "head_dim": tiny.HEAD,
            "hidden_act": "silu",
            "hidden_size": tiny.HIDDEN,
            "intermediate_size": tiny.INNER,
            "max_position_embeddings": tiny.CONTEXT,
            "mlp_bias": False,
            "model_type": "llama",
            "num_attention_heads": tiny.HIDDEN // tiny.HEAD,
            "num_hidden_layers": 1,
            "num_key_value_heads": 1,
            "rms_norm_eps": 1e-05,
            "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"},
            "tie_word_embeddings": False,
            "vocab_size": tiny.VOCAB,
        },
        "transformers_version": "5.24.0",
    }
    if method == "peagle":
        config["mask_token_id"] = 3
    change(config)
    out = folder.with_name(f"{folder.name}-speculators")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    (out / "config.json").write_text(json.dumps(config))
    tensors = load_file(folder / "model.safetensors")
    known = np.zeros(tiny.VOCAB, np.bool_)
    known[tensors["d2t"] + np.arange(tiny.DRAFT_VOCAB)] = True
    save_file({**tensors, "t2d": known}, out / "model.safetensors")
    return out


@pytest.fixture
def target(tiny_spec: EngineSpec) -> LlamaConfig:
    assert tiny_spec.model
    return LlamaConfig.read(Path(tiny_spec.model))


@pytest.mark.parametrize("method", ["eagle3", "peagle"])
def test_it_is_the_drafter_that_vllms_form_tells_of(
    method: Method, target: LlamaConfig, tmp_path: Path, tiny_spec: EngineSpec
) -> None:
    theirs = tiny.write_drafter(tmp_path / "drafter", method)
    ours = as_speculators(theirs, method)
    config = DrafterConfig.read(ours, target)
    assert drafter_method(ours) == method
    assert config == DrafterConfig.read(theirs, target)
    check_drafter(ours, config, target)


def test_it_drafts_the_same(tmp_path: Path, tiny_spec: EngineSpec) -> None:
    theirs = tiny.write_drafter(tmp_path / "drafter", "peagle")
    assert drafts_of(tiny_spec, as_speculators(theirs, "peagle")) == drafts_of(tiny_spec, theirs)


def drafts_of(spec: EngineSpec, drafter: Path) -> list[tuple[int, ...]]:
    engine = TorchEngine.open(EngineSpec(spec.model, (str(drafter),), spec.device, spec.dtype))
    request = Request((Message("user", "Hello."),), (LaneSetting("chat", "peagle", 4),), Sampling(), 8)
    batches = [event for event in engine.run(request) if isinstance(event, DraftBatch)]
    return [tuple(token.id for token in batch.drafted) for batch in batches]


def test_what_equals_transformers_defaults_may_be_left_out(target: LlamaConfig, tmp_path: Path) -> None:
    drafter = tiny.write_drafter(tmp_path / "drafter", "eagle3")
    ours = as_speculators(drafter, "eagle3", lambda config: config["transformer_layer_config"].pop("rms_norm_eps"))
    assert DrafterConfig.read(ours, target).llama.rms_norm_eps == 1e-6


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda config: config.update(speculators_model_type="dflash"), "holds a dflash drafter"),
        (lambda config: config.update(norm_before_fc=True), "uses norm_before_fc"),
        (lambda config: config.update(mask_token_id=None), "names no mask_token_id"),
        (lambda config: config.update(transformer_layer_config=[]), "transformer_layer_config is no object"),
        (lambda config: config["transformer_layer_config"].update(model_type="qwen3"), "has layers of qwen3"),
        (lambda config: config["transformer_layer_config"].update(layer_types=["sliding_attention"]), "sliding window"),
        (lambda config: config["transformer_layer_config"].update(hidden_size="wide"), "is unusable"),
    ],
)
def test_what_cannot_be_run_is_refused(
    change: Callable[[dict[str, Any]], Any], message: str, target: LlamaConfig, tmp_path: Path
) -> None:
    ours = as_speculators(tiny.write_drafter(tmp_path / "drafter", "peagle"), "peagle", change)
    with pytest.raises(BadInputError, match=message):
        DrafterConfig.read(ours, target)
