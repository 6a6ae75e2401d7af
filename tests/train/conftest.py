"""A tiny target with conversations that it really had, and drafters in training for it."""

from pathlib import Path

import msgspec
import pytest
import torch

from peagle_cli.engine.torch.target import Target
from peagle_cli.models.tokenizer import Tokenizer
from peagle_cli.train.batch import Batch, collate
from peagle_cli.train.conversations import Conversation, frequent_tokens
from peagle_cli.train.loss import SoftTargets
from peagle_cli.train.model import Shape, TargetHead, TrainableDrafter
from peagle_cli.train.objectives import backward
from peagle_cli.train.orders import Order
from peagle_cli.train.settings import Settings, TrainableMethod
from peagle_cli.train.start import start_from_target
from peagle_cli.train.states import default_aux_layers
from peagle_cli.train.writers import EngineWriter
from tests import tiny

CPU = torch.device("cpu")
ANSWER_TOKENS = 40


@pytest.fixture(scope="session")
def target_folder(tmp_path_factory: pytest.TempPathFactory, default_target: Path) -> Path:
    return tiny.write_target(tmp_path_factory.mktemp("train") / "target", tokenizer=default_target)


@pytest.fixture(scope="session")
def target(target_folder: Path) -> Target:
    return Target.load(target_folder, CPU, torch.float32, context=512)


@pytest.fixture(scope="session")
def conversations(target: Target, target_folder: Path) -> list[Conversation]:
    """Greedy answers to prompts of different lengths."""
    tokenizer = Tokenizer.load(target_folder)
    prompts = [tokenizer.encode(f"Tell me about {' and '.join(['rivers'] * (1 + i % 5))} {i}.") for i in range(80)]
    written = EngineWriter(target, tokenizer).write([Order(ids, ANSWER_TOKENS, 0.0, 0) for ids in prompts])
    answers = [ids for _, ids in written]
    return [Conversation(ids + answer, len(ids)) for ids, answer in zip(prompts, answers, strict=True)]


@pytest.fixture(scope="session")
def data_file(conversations: list[Conversation], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "data.jsonl"
    path.write_bytes(b"\n".join(msgspec.json.encode(conversation) for conversation in conversations) + b"\n")
    return path


def states_of(target: Target, conversations: list[Conversation]) -> list[torch.Tensor]:
    layers = default_aux_layers(target.config.num_hidden_layers)
    return [target.prefill(torch.tensor(c.ids), target.new_cache(), layers)[1] for c in conversations]


def batch_of(target: Target, drafter: TrainableDrafter, conversations: list[Conversation]) -> Batch:
    known = torch.zeros(target.config.vocab_size, dtype=torch.bool)
    known[drafter.draft_ids] = True
    return collate(conversations, states_of(target, conversations), known, torch.float32)


def new_drafter(
    target: Target, conversations: list[Conversation], method: TrainableMethod, layers: int = 2
) -> TrainableDrafter:
    """A drafter at its start, except that its layers do something."""
    torch.manual_seed(5)
    config = msgspec.structs.replace(target.config, num_hidden_layers=layers)
    shape = Shape(config, 300, default_aux_layers(target.config.num_hidden_layers), 3 if method == "peagle" else None)
    draft_ids = torch.tensor(frequent_tokens(conversations, 300, config.vocab_size))
    drafter = TrainableDrafter(shape, draft_ids, target.embedding)
    start_from_target(drafter, TargetHead.of(target, draft_ids), torch.cat(states_of(target, conversations[:8])))
    with torch.no_grad():
        for layer in drafter.layer_list:
            layer.o.mul_(4)
            layer.down.mul_(4)
    return drafter


def trained_drafter(target: Target, conversations: list[Conversation], method: TrainableMethod) -> TrainableDrafter:
    """A drafter some of whose drafts are accepted, on the first eight conversations."""
    drafter = new_drafter(target, conversations, method)
    batch = batch_of(target, drafter, conversations[:8])
    targets = SoftTargets.of(batch, TargetHead.of(target, drafter.draft_ids))
    optimiser = torch.optim.Adam(drafter.parameters(), lr=3e-3)
    for step in range(60):
        optimiser.zero_grad()
        backward(drafter, batch, targets, Settings(method=method), torch.Generator().manual_seed(step))
        optimiser.step()
    return drafter
