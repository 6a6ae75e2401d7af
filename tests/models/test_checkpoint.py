"""Checkpoints that do not fit are refused in one sentence, before a weight is loaded."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from peagle_cli.errors import BadInputError
from peagle_cli.models.checkpoint import DrafterConfig, check_drafter, check_target
from peagle_cli.models.config import LlamaConfig
from peagle_cli.models.headers import read_headers
from peagle_cli.models.presets import DEFAULT

HIDDEN, VOCAB, DRAFT_VOCAB = 8, 32, 16
LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": HIDDEN,
    "intermediate_size": 12,
    "num_hidden_layers": 4,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "vocab_size": VOCAB,
    "max_position_embeddings": 64,
    "rms_norm_eps": 1e-5,
}
PEAGLE = LLAMA | {
    "architectures": ["LlamaForCausalLMEagle3"],
    "num_hidden_layers": 2,
    "draft_vocab_size": DRAFT_VOCAB,
    "ptd_token_id": 3,
    "eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 2, 4]},
}

Tensors = dict[str, np.ndarray[Any, Any]]
Change = Callable[[dict[str, Any], Tensors], Any]


def _layer(name: str, inputs: int) -> Tensors:
    shapes = {
        "input_layernorm": (HIDDEN,),
        "post_attention_layernorm": (HIDDEN,),
        "self_attn.q_proj": (8, inputs),
        "self_attn.k_proj": (4, inputs),
        "self_attn.v_proj": (4, inputs),
        "self_attn.o_proj": (HIDDEN, 8),
        "mlp.gate_proj": (12, HIDDEN),
        "mlp.up_proj": (12, HIDDEN),
        "mlp.down_proj": (HIDDEN, 12),
    }
    return {f"{name}.{part}.weight": np.zeros(shape, np.float32) for part, shape in shapes.items()}


def _peagle_tensors() -> Tensors:
    return {
        **_layer("layers.0", 2 * HIDDEN),
        **_layer("layers.1", HIDDEN),
        "layers.0.hidden_norm.weight": np.zeros(HIDDEN, np.float32),
        "fc.weight": np.zeros((HIDDEN, 3 * HIDDEN), np.float32),
        "norm.weight": np.zeros(HIDDEN, np.float32),
        "lm_head.weight": np.zeros((DRAFT_VOCAB, HIDDEN), np.float32),
        "mask_hidden": np.zeros((1, 1, 3 * HIDDEN), np.float32),
        "d2t": np.arange(DRAFT_VOCAB),
        "t2d": np.zeros(VOCAB, np.bool_),
    }


def _target_tensors() -> Tensors:
    tensors = {name: array for i in range(4) for name, array in _layer(f"model.layers.{i}", HIDDEN).items()}
    tensors["model.norm.weight"] = np.zeros(HIDDEN, np.float32)
    tensors["model.embed_tokens.weight"] = tensors["lm_head.weight"] = np.zeros((VOCAB, HIDDEN), np.float32)
    return tensors


def _write(folder: Path, config: dict[str, Any], tensors: Tensors, change: Change = lambda c, t: None) -> Path:
    config = json.loads(json.dumps(config))
    change(config, tensors)
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    save_file(tensors, folder / "model.safetensors")
    return folder


@pytest.fixture
def target(tmp_path: Path) -> LlamaConfig:
    return LlamaConfig.read(_write(tmp_path / "target", LLAMA, _target_tensors()))


def _open(folder: Path, target: LlamaConfig) -> DrafterConfig:
    config = DrafterConfig.read(folder, target)
    check_drafter(folder, config, target)
    return config


def _become_eagle3(config: dict[str, Any], tensors: Tensors) -> None:
    del config["ptd_token_id"], tensors["mask_hidden"]


def _use_the_whole_vocabulary(config: dict[str, Any], tensors: Tensors) -> None:
    config["draft_vocab_size"] = VOCAB
    tensors["lm_head.weight"] = np.zeros((VOCAB, HIDDEN), np.float32)
    del tensors["d2t"], tensors["t2d"]


def _use_the_whole_vocabulary_and_a_table(config: dict[str, Any], tensors: Tensors) -> None:
    _use_the_whole_vocabulary(config, tensors)
    tensors["d2t"] = np.zeros(VOCAB, np.int64)


def test_shipped_drafters_fit_the_default_target(default_target: Path) -> None:
    config = LlamaConfig.read(default_target)
    check_target(default_target, config)
    drafters = [_open(folder, config) for folder in DEFAULT.drafters]
    assert [drafter.method for drafter in drafters] == ["peagle", "eagle3"]
    assert {drafter.aux_layers for drafter in drafters} == {(2, 16, 30)}


def test_reads_a_peagle_drafter(tmp_path: Path, target: LlamaConfig) -> None:
    config = _open(_write(tmp_path / "drafter", PEAGLE, _peagle_tensors()), target)
    assert config.method == "peagle"
    assert (config.mask_token_id, config.aux_layers, config.draft_vocab_size) == (3, (1, 2, 4), DRAFT_VOCAB)
    assert config.llama.num_hidden_layers == 2


@pytest.mark.parametrize(
    "change",
    [
        _become_eagle3,
        _use_the_whole_vocabulary,
        lambda config, tensors: tensors.update({"embed_tokens.weight": np.zeros((VOCAB, HIDDEN), np.float16)}),
        lambda config, tensors: config.update(norm_before_residual=True),
    ],
)
def test_accepts_every_variant_of_the_format(tmp_path: Path, target: LlamaConfig, change: Change) -> None:
    _open(_write(tmp_path / "drafter", PEAGLE, _peagle_tensors(), change), target)


def test_says_which_auxiliary_layers_stand_in_for_missing_ones(
    tmp_path: Path, target: LlamaConfig, caplog: pytest.LogCaptureFixture
) -> None:
    folder = _write(tmp_path / "drafter", PEAGLE, _peagle_tensors(), lambda config, _: config.pop("eagle_config"))
    deeper = LlamaConfig.read(_write(tmp_path / "deeper", LLAMA | {"num_hidden_layers": 30}, {}))
    assert DrafterConfig.read(folder, deeper).aux_layers == (2, 15, 27)
    assert "does not name its auxiliary layers" in caplog.text


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda c, t: c.update(architectures=["Qwen3ForCausalLM"]), "holds a Qwen3ForCausalLM, not an EAGLE-3"),
        (lambda c, t: c.update(norm_output=True), "uses norm_output"),
        (lambda c, t: c["eagle_config"].update(norm_before_fc=True), "uses norm_before_fc"),
        (lambda c, t: c["eagle_config"].update(use_aux_hidden_state=False), "use_aux_hidden_state"),
        (lambda c, t: c.update(hidden_size="big"), "unusable"),
        (lambda c, t: c.update(eagle_config=[1, 2, 4]), "eagle_config is no object"),
        (lambda c, t: c.update(ptd_token_id="three"), "unusable"),
        (lambda c, t: c.update(vocab_size=64), "vocabulary of 64 tokens, and the target's has 32"),
        (lambda c, t: c.update(draft_vocab_size=33), "drafts from 33 tokens"),
        (lambda c, t: c.update(ptd_token_id=32), "mask token 32, and the target's vocabulary ends at 31"),
        (lambda c, t: c["eagle_config"].update(eagle_aux_hidden_state_layer_ids=[1, 2, 5]), "layers 1, 2, 5"),
        (lambda c, t: c["eagle_config"].update(eagle_aux_hidden_state_layer_ids=[2, 1, 3]), "out of order"),
        (lambda c, t: c["eagle_config"].update(eagle_aux_hidden_state_layer_ids=[2, 3]), "24 channels .* 2 .* have 16"),
        (lambda c, t: c.update(intermediate_size=16), "mlp.gate_proj.weight .* is 12 × 8, where 16 × 8 was expected"),
        (lambda c, t: t.pop("norm.weight"), "no tensor norm.weight"),
        (lambda c, t: t.pop("mask_hidden"), "no mask_hidden"),
        (lambda c, t: c.update(num_hidden_layers=3), r"no tensor layers.2.input_layernorm.weight \(and 8 more\)"),
        (lambda c, t: c.update(num_hidden_layers=1), "no use for: layers.1.input_layernorm.weight"),
        (lambda c, t: t.update({"layers.0.self_attn.q_proj.bias": np.zeros(8, np.float32)}), "no use for: .*bias"),
        (lambda c, t: t.pop("d2t"), "without a table"),
        (_use_the_whole_vocabulary_and_a_table, "whole vocabulary and still has a table"),
        (lambda c, t: t.update(d2t=np.full(DRAFT_VOCAB, 20)), "names tokens that the target does not have"),
        (lambda c, t: t.update(d2t=-np.arange(DRAFT_VOCAB)), "or one twice"),
        (lambda c, t: t.update({"norm.weight": np.zeros(HIDDEN, np.int8)}), "norm.weight .* stored as I8"),
    ],
)
def test_says_why_a_drafter_does_not_fit(tmp_path: Path, target: LlamaConfig, change: Change, sentence: str) -> None:
    with pytest.raises(BadInputError, match=sentence):
        _open(_write(tmp_path / "drafter", PEAGLE, _peagle_tensors(), change), target)


def test_a_narrower_drafter_needs_embeddings_of_its_own(tmp_path: Path, target: LlamaConfig) -> None:
    folder = _write(tmp_path / "drafter", PEAGLE, _peagle_tensors())
    wider = LlamaConfig.read(_write(tmp_path / "wider", LLAMA | {"hidden_size": 16, "head_dim": 4}, {}))
    config = DrafterConfig.read(folder, wider)
    with pytest.raises(BadInputError, match="reads 24 channels of hidden states, and 3 states of the target have 48"):
        check_drafter(folder, config, wider)
    tensors = _peagle_tensors() | {
        "fc.weight": np.zeros((HIDDEN, 48), np.float32),
        "mask_hidden": np.zeros(48, np.float32),
    }
    save_file(tensors, folder / "model.safetensors")
    with pytest.raises(BadInputError, match="hidden size 8 and no embeddings of its own"):
        check_drafter(folder, config, wider)
    save_file(tensors | {"embed_tokens.weight": np.zeros((VOCAB, 8), np.float32)}, folder / "model.safetensors")
    check_drafter(folder, config, wider)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda c, t: c.update(architectures=["MambaForCausalLM"]), "MambaForCausalLM, .* runs LlamaForCausalLM only"),
        (lambda c, t: c.update(quantization_config={"bits": 4}), "quantised"),
        (lambda c, t: t.pop("lm_head.weight"), "no tensor lm_head.weight"),
        (lambda c, t: t.update({"model.norm.weight": np.zeros(9, np.float32)}), "model.norm.weight .* is 9, where 8"),
    ],
)
def test_says_why_a_target_cannot_run(tmp_path: Path, change: Change, sentence: str) -> None:
    folder = _write(tmp_path / "target", LLAMA, _target_tensors(), change)
    with pytest.raises(BadInputError, match=sentence):
        check_target(folder, LlamaConfig.read(folder))


def test_tied_embeddings_need_no_head(tmp_path: Path) -> None:
    tensors = _target_tensors()
    del tensors["lm_head.weight"]
    folder = _write(tmp_path / "target", LLAMA | {"tie_word_embeddings": True}, tensors)
    check_target(folder, LlamaConfig.read(folder))


def _shard(folder: Path) -> Path:
    """The tiny target, in two files."""
    tensors = _target_tensors()
    _write(folder, LLAMA, {})
    (folder / "model.safetensors").unlink()
    placed = {name: f"part-{1 + (i % 2)}.safetensors" for i, name in enumerate(sorted(tensors))}
    for shard in set(placed.values()):
        save_file({name: tensors[name] for name in tensors if placed[name] == shard}, folder / shard)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": placed}))
    return folder


def test_reads_sharded_targets(tmp_path: Path) -> None:
    folder = _shard(tmp_path / "target")
    check_target(folder, LlamaConfig.read(folder))
    shards = {header.file.name for header in read_headers(folder).values()}
    assert shards == {"part-1.safetensors", "part-2.safetensors"}


def _damaged(data: bytes, at: int, byte: int) -> bytes:
    return data[:at] + bytes([byte]) + data[at + 1 :]


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda data: data[:-1], "cut short: it should have .* bytes"),
        (lambda data: data[:100], "cut short"),
        (lambda data: data[:4], "cut short"),
        (lambda data: b"", "cut short"),
        (lambda data: b"GGUF" * 100, "not a safetensors file"),
        (lambda data: _damaged(data, 8, 0x20), "not a safetensors file"),
        (lambda data: data.replace(b'"shape":[8]', b'"shape":[7]', 1), "does not fit its shape"),
    ],
)
def test_says_that_a_file_is_damaged(tmp_path: Path, damage: Callable[[bytes], bytes], sentence: str) -> None:
    folder = _write(tmp_path / "target", LLAMA, _target_tensors())
    path = folder / "model.safetensors"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(BadInputError, match=sentence):
        read_headers(folder)


@pytest.mark.parametrize(
    ("index", "sentence"),
    [
        ({"weight_map": {"a": "../elsewhere.safetensors"}}, "outside its folder"),
        ({"weight_map": {"norm.weight": "gone.safetensors"}}, "gone.safetensors cannot be read: No such file"),
        ({"weight_map": {"norm.bias": "part-1.safetensors"}}, "norm.bias is in none of the files"),
        ({}, "does not say which file"),
    ],
)
def test_says_what_is_wrong_with_an_index(tmp_path: Path, index: dict[str, Any], sentence: str) -> None:
    folder = _shard(tmp_path / "target")
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(BadInputError, match=sentence):
        read_headers(folder)


def test_says_that_weights_are_missing(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match=r"model.safetensors cannot be read: No such file"):
        read_headers(tmp_path)
