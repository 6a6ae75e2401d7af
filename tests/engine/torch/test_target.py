"""The target against transformers, with and without its cache."""

from pathlib import Path

import pytest
import torch
from transformers import LlamaConfig as HfLlamaConfig
from transformers import LlamaForCausalLM

from peagle_cli.engine.torch import hardware
from peagle_cli.engine.torch.drafter import MAX_DEPTH
from peagle_cli.engine.torch.layers import KEY_BLOCK
from peagle_cli.engine.torch.packed import PackedMatrices
from peagle_cli.engine.torch.target import Target
from peagle_cli.models import store
from tests.engine.torch import small


@pytest.fixture(scope="module")
def ids() -> torch.Tensor:
    return torch.randint(small.VOCAB, (50,), generator=torch.Generator().manual_seed(0))


def test_logits_and_auxiliary_states_equal_transformers(
    small_target: Target, small_folder: Path, ids: torch.Tensor
) -> None:
    reference = LlamaForCausalLM.from_pretrained(small_folder, dtype=torch.float32)
    with torch.inference_mode():
        expected = reference(ids[None], output_hidden_states=True)
    hidden, aux = small_target.forward(ids, small_target.new_cache(), (0, 2, 3))
    torch.testing.assert_close(small_target.logits(hidden), expected.logits[0], rtol=1e-4, atol=1e-4)
    states = torch.cat([expected.hidden_states[i][0] for i in (0, 2, 3)], -1)
    torch.testing.assert_close(aux, states, rtol=1e-4, atol=1e-4)


def test_llama3_rope_equals_transformers(tmp_path: Path, ids: torch.Tensor) -> None:
    rope = {
        "rope_type": "llama3",
        "rope_theta": 10000.0,
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 16,
    }
    config = HfLlamaConfig.from_dict({**small.LLAMA, "rope_parameters": rope})
    torch.manual_seed(0)
    reference = LlamaForCausalLM(config)
    reference.save_pretrained(tmp_path)
    target = small.load_target(tmp_path)
    with torch.inference_mode():
        expected = reference(ids[None]).logits[0]
    hidden, _ = target.forward(ids, target.new_cache())
    torch.testing.assert_close(target.logits(hidden), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("at_4_bits", [False, True])
def test_a_pass_over_many_tokens_equals_single_ones_to_the_bit(default_target: Path, at_4_bits: bool) -> None:
    """What makes bfloat16 lossless: how many tokens share a pass changes nothing, across blocks of keys too."""
    cpu = torch.device("cpu")
    if at_4_bits and not hardware.has_int4(cpu):
        pytest.skip("this processor has no kernel for 4-bit weights")
    if not at_4_bits and not hardware.computes_in_bfloat16(cpu):
        pytest.skip("this processor's kernels for bfloat16 are others")
    gguf = store.gguf_file(None)
    packed = PackedMatrices(gguf) if gguf and at_4_bits else None
    target = Target.load(default_target, cpu, torch.bfloat16, 256, packed)
    ids = torch.randint(49152, (KEY_BLOCK + 40,), generator=torch.Generator().manual_seed(0))
    one, many = target.new_cache(), target.new_cache()
    for cache in (one, many):
        target.prefill(ids[:40], cache)
    single = torch.cat([target.forward(token[None], one)[0] for token in ids[40:]])
    drafted = torch.cat([target.forward(chunk, many)[0] for chunk in torch.split(ids[40:], MAX_DEPTH + 1)])
    assert torch.equal(target.logits(single[-4:]), torch.cat([target.logits(row[None]) for row in drafted[-4:]]))
    assert torch.equal(single, drafted)


def test_the_real_models_logits_equal_transformers(default_target: Path) -> None:
    ids = torch.randint(49152, (40,), generator=torch.Generator().manual_seed(0))
    reference = LlamaForCausalLM.from_pretrained(default_target, dtype=torch.float32)
    target = small.load_target(default_target, 256)
    with torch.inference_mode():
        expected = reference(ids[None]).logits[0]
    hidden, _ = target.forward(ids, target.new_cache())
    torch.testing.assert_close(target.logits(hidden), expected, rtol=1e-3, atol=1e-3)


def test_pieces_and_rollback_equal_one_pass(small_target: Target, ids: torch.Tensor) -> None:
    whole, whole_aux = small_target.forward(ids, small_target.new_cache(), (1, 4))
    cache = small_target.new_cache()
    small_target.forward(ids[:20], cache)
    small_target.forward(ids[:7], cache)  # of another sequence: to be rolled back
    cache.length = 20
    pieces = [small_target.forward(piece, cache, (1, 4)) for piece in ids[20:].split([1, 4, 25])]
    torch.testing.assert_close(torch.cat([hidden for hidden, _ in pieces]), whole[20:], rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(torch.cat([aux for _, aux in pieces]), whole_aux[20:], rtol=1e-3, atol=1e-3)
