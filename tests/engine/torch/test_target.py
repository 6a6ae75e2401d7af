"""The target against transformers, with and without its cache."""

from pathlib import Path

import pytest
import torch
from transformers import LlamaConfig as HfLlamaConfig
from transformers import LlamaForCausalLM

from peagle_cli.engine.torch.target import Target
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
