"""A random Llama that speaks a dozen letters, and drafters for it that are right now and then.

The drafters are random but for their heads, which are fitted to what the target says by least squares: enough that
drafts of every length are accepted and rejected within a short reply.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tokenizers
import torch
from safetensors.torch import save_file
from torch import Tensor

from peagle_cli.engine.torch.drafter import DRAFTERS, Drafter
from peagle_cli.engine.torch.engine import TorchEngine
from peagle_cli.engine.torch.target import Target
from peagle_cli.engine.torch.weights import Weights
from peagle_cli.models.checkpoint import DrafterConfig, check_drafter
from peagle_cli.models.tokenizer import Tokenizer
from peagle_cli.trace.events import Method
from tests.engine.torch import reference

CPU = torch.device("cpu")
LETTERS = "abcdefghijkl"
VOCAB = len(LETTERS)
DRAFT_IDS = [0, 1, 2, 3, 4, 6, 7, 8, 9, 11]
DRAFT_VOCAB = len(DRAFT_IDS)
MASK_ID = 5
HIDDEN, CONTEXT = 32, 160
AUX_LAYERS = {"eagle3": (1, 2, 4), "peagle": (0, 1, 3)}
ALL_AUX_LAYERS = (0, 1, 2, 3, 4)

LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": HIDDEN,
    "intermediate_size": 48,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "vocab_size": VOCAB,
    "max_position_embeddings": CONTEXT,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "tie_word_embeddings": False,
}

Tensors = dict[str, Tensor]


def write_target(folder: Path) -> Path:
    """Write a random target, always the same."""
    random = torch.Generator().manual_seed(1)
    tensors = {
        "model.embed_tokens.weight": _matrix(random, VOCAB, HIDDEN),
        "model.norm.weight": _vector(random),
        "lm_head.weight": _matrix(random, VOCAB, HIDDEN, 3.0),
    }
    for i in range(4):
        tensors |= _layer(random, f"model.layers.{i}", HIDDEN)
    return _write(folder, LLAMA, tensors)


def write_drafter(folder: Path, target: Target, method: Method, *, layers: int = 1, **config: Any) -> Path:
    """Write a drafter with that many layers; `config` adds to its configuration."""
    random = torch.Generator().manual_seed(layers)
    aux = AUX_LAYERS[method]
    config = LLAMA | {
        "architectures": ["LlamaForCausalLMEagle3"],
        "num_hidden_layers": layers,
        "draft_vocab_size": DRAFT_VOCAB,
        "eagle_config": {"eagle_aux_hidden_state_layer_ids": aux},
        **config,
    }
    tensors = {
        "fc.weight": _matrix(random, HIDDEN, len(aux) * HIDDEN),
        "layers.0.hidden_norm.weight": _vector(random),
        "norm.weight": _vector(random),
        "d2t": torch.tensor(DRAFT_IDS) - torch.arange(DRAFT_VOCAB),
    }
    if method == "peagle":
        config["ptd_token_id"] = MASK_ID
        tensors["mask_hidden"] = _matrix(random, 1, len(aux) * HIDDEN)
    for i in range(layers):
        tensors |= _layer(random, f"layers.{i}", HIDDEN if i else 2 * HIDDEN)
    tensors["lm_head.weight"] = _fitted_head(tensors, target, method)
    return _write(folder, config, tensors)


def drafter_inputs(tensors: Tensors, target: Target, method: Method, ids: Tensor) -> tuple[Tensor, Tensor]:
    """The embeddings and hidden states [n - 1, H] of the real slots of `ids` [n]."""
    _, aux = target.forward(ids[:-1], target.new_cache(), AUX_LAYERS[method])
    return target.embedding[ids[1:]], aux @ tensors["fc.weight"].T


def greedy_reply(target: Target, prompt: Sequence[int], tokens: int) -> list[int]:
    """Greedy decoding with no cache at all."""
    ids = list(prompt)
    for _ in range(tokens):
        hidden, _ = target.forward(torch.tensor(ids), target.new_cache())
        ids.append(int(target.logits(hidden[-1:]).argmax()))
    return ids[len(prompt) :]


def load_target(folder: Path, context: int | None = None) -> Target:
    """The target in float32."""
    return Target.load(folder, CPU, torch.float32, context)


def load_drafter(folder: Path, target: Target) -> Drafter:
    """A drafter for it, which takes its auxiliary states out of those of all layers."""
    config = DrafterConfig.read(folder, target.config)
    check_drafter(folder, config, target.config)
    return DRAFTERS[config.method](config, Weights(folder, CPU, torch.float32), target, ALL_AUX_LAYERS)


def tokenizer(eos: Sequence[int] = ()) -> Tokenizer:
    """A tokeniser of single letters, whose template just joins what was said."""
    backend = tokenizers.Tokenizer(tokenizers.models.WordLevel({letter: i for i, letter in enumerate(LETTERS)}, "a"))
    backend.pre_tokenizer = tokenizers.pre_tokenizers.Split("", "isolated")
    backend.decoder = tokenizers.decoders.Fuse()
    template = "{% for message in messages %}{{ message.content }}{% endfor %}"
    return Tokenizer(backend, template, {}, frozenset(eos))


def engine(target: Target, drafters: Sequence[Drafter], eos: Sequence[int] = ()) -> TorchEngine:
    """An engine with these models."""
    by_method = {drafter.method: drafter for drafter in drafters}
    names: dict[Method, str] = {method: f"small {method}" for method in by_method}
    return TorchEngine("small", target, tokenizer(eos), by_method, names, ALL_AUX_LAYERS)


def _fitted_head(tensors: Tensors, target: Target, method: Method) -> Tensor:
    """The head [Vd, H] that best tells the target's next tokens from the drafter's features."""
    features, answers = [], []
    for seed in range(12):
        prompt = torch.randint(VOCAB, (6,), generator=torch.Generator().manual_seed(100 + seed)).tolist()
        ids = torch.tensor(prompt + greedy_reply(target, prompt, 40))
        embeds, hidden = drafter_inputs(tensors, target, method, ids)
        features.append(reference.drafter_hidden(tensors, embeds, hidden)[:-1])
        answers.append(ids[2:])
        for anchor in range(5, 42) if method == "peagle" else ():
            slots = reference.with_masks(tensors, target.embedding[MASK_ID], embeds[:anchor], hidden[:anchor], 3)
            features.append(reference.drafter_hidden(tensors, *slots)[-3:])
            answers.append(ids[anchor + 2 : anchor + 5])
    normed = reference.normed_by(tensors, "norm", torch.cat(features))
    wanted = (torch.cat(answers)[:, None] == torch.tensor(DRAFT_IDS)).float()
    head: Tensor = 5 * torch.linalg.lstsq(normed, wanted).solution.T.contiguous()
    return head


def _layer(random: torch.Generator, name: str, inputs: int) -> Tensors:
    shapes = {
        "self_attn.q_proj": (HIDDEN, inputs),
        "self_attn.k_proj": (16, inputs),
        "self_attn.v_proj": (16, inputs),
        "self_attn.o_proj": (HIDDEN, HIDDEN),
        "mlp.gate_proj": (48, HIDDEN),
        "mlp.up_proj": (48, HIDDEN),
        "mlp.down_proj": (HIDDEN, 48),
    }
    matrices = {f"{name}.{part}.weight": _matrix(random, *shape, 2.0) for part, shape in shapes.items()}
    norms = ("input_layernorm", "post_attention_layernorm")
    return matrices | {f"{name}.{norm}.weight": _vector(random) for norm in norms}


def _matrix(random: torch.Generator, rows: int, columns: int, scale: float = 1.0) -> Tensor:
    return torch.randn(rows, columns, generator=random).mul_(scale / columns**0.5)


def _vector(random: torch.Generator) -> Tensor:
    return 0.5 + torch.rand(HIDDEN, generator=random)


def _write(folder: Path, config: dict[str, Any], tensors: Tensors) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config))
    save_file(tensors, folder / "model.safetensors")
    return folder
