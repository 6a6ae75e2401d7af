"""Puts a training run together from what a user names."""

from pathlib import Path

import torch
from msgspec.structs import replace
from torch import Tensor

from peagle_cli.engine.torch import hardware
from peagle_cli.engine.torch.target import Target
from peagle_cli.errors import BadInputError
from peagle_cli.models.config import LlamaConfig
from peagle_cli.models.tokenizer import Tokenizer
from peagle_cli.train import checkpoint
from peagle_cli.train.anchors import point_at_anchors
from peagle_cli.train.conversations import Conversation, frequent_tokens, read_conversations
from peagle_cli.train.disk import make_folder
from peagle_cli.train.facts import Facts, save_facts
from peagle_cli.train.loop import Data, Listener, Run
from peagle_cli.train.model import Shape, TargetHead, TrainableDrafter
from peagle_cli.train.settings import Settings
from peagle_cli.train.snapshots import CONTEXT as SNAPSHOT_CONTEXT
from peagle_cli.train.snapshots import Snapshots
from peagle_cli.train.start import settled_states, start_from_target
from peagle_cli.train.states import StateCache, default_aux_layers
from peagle_cli.train.vllm_format import has_mask_slots, load_weights, read_draft_ids

HELD_OUT = 32
"""Conversations taken from the end of the data for validation when no other file is given."""
SAMPLE = 8
"""Conversations that the mask slots' first attention heads are fitted on."""


def open_run(
    folder: Path,
    settings: Settings,
    target_folder: Path,
    data: Path,
    validation: Path | None,
    states: Path,
    start: Path | None,
    device: torch.device,
    listener: Listener,
) -> Run:
    """A run in `folder`, new or gone on with.

    `states` is where the target's states are kept, `start` an exported drafter whose weights the new one begins with.
    Raises `BadInputError` for what cannot be used.
    """
    for place in (folder, states):
        make_folder(place)
    config = LlamaConfig.read(target_folder)
    training, held_out = _conversations(data, validation, config, settings)
    target = Target.load(target_folder, device, torch.bfloat16, context=max(settings.max_length, SNAPSHOT_CONTEXT))
    aux_layers = default_aux_layers(config.num_hidden_layers)
    training_states = StateCache(states / "training", training, aux_layers, target)
    validation_states = StateCache(states / "validation", held_out, aux_layers, target)
    draft_ids = checkpoint.draft_ids(folder)
    begun = draft_ids is not None
    if draft_ids is None:
        draft_ids = read_draft_ids(start) if start else _draft_ids(training, settings, config)
    drafter = _drafter(settings, config, draft_ids, target)
    known = torch.zeros(config.vocab_size, dtype=torch.bool, device=device)
    known[drafter.draft_ids] = True
    head = TargetHead.of(target, drafter.draft_ids)
    training_data = Data(training, training_states, known, target.dtype)
    validation_data = Data(held_out, validation_states, known, target.dtype)
    if not begun:
        start_from_target(drafter, head, settled_states(training_states, training))
        if start is not None:
            load_weights(drafter, start)
        if settings.method == "peagle" and not (start and has_mask_slots(start)):
            point_at_anchors(drafter, training_data.batch(range(SAMPLE)), settings.train_depth - 1)
    save_facts(_facts(settings, target_folder, drafter, data, training, start, device), folder)
    snapshots = Snapshots(folder, target_folder.name, target, Tokenizer.load(target_folder))
    return Run(folder, settings, drafter, head, training_data, validation_data, snapshots, listener)


def _facts(
    settings: Settings,
    target_folder: Path,
    drafter: TrainableDrafter,
    data: Path,
    training: list[Conversation],
    start: Path | None,
    device: torch.device,
) -> Facts:
    return Facts(
        settings=settings,
        model=target_folder.name,
        parameters=sum(parameter.numel() for parameter in drafter.parameters()),
        data=data.name,
        conversations=len(training),
        answer_tokens=sum(len(conversation.answer) for conversation in training),
        start=f"{start.parent.name}/{start.name}" if start else None,
        machine=hardware.device_name(device),
        threads=torch.get_num_threads(),
        torch=str(torch.__version__),
    )


def _conversations(
    data: Path, validation: Path | None, config: LlamaConfig, settings: Settings
) -> tuple[list[Conversation], list[Conversation]]:
    """What to train on and what to hold out."""
    training = read_conversations(data, config.vocab_size, settings.max_length)
    if validation is not None:
        return training, read_conversations(validation, config.vocab_size, settings.max_length)
    if len(training) < 2 * HELD_OUT:
        raise BadInputError(
            f"{data} has {len(training)} conversations, too few to hold out {HELD_OUT} for validation.",
            "Make more data, or name a file with --validation.",
        )
    return training[:-HELD_OUT], training[-HELD_OUT:]


def _draft_ids(training: list[Conversation], settings: Settings, config: LlamaConfig) -> Tensor:
    if settings.draft_vocab >= config.vocab_size:
        raise BadInputError(
            f"A draft vocabulary of {settings.draft_vocab} is not smaller than the target's of {config.vocab_size}.",
            "Choose a smaller one with --draft-vocab.",
        )
    return torch.tensor(frequent_tokens(training, settings.draft_vocab, config.vocab_size))


def _drafter(settings: Settings, config: LlamaConfig, draft_ids: Tensor, target: Target) -> TrainableDrafter:
    """A drafter at random."""
    llama = replace(
        config,
        num_hidden_layers=settings.layer_count,
        intermediate_size=settings.intermediate,
        tie_word_embeddings=False,
    )
    mask_token = settings.mask_token if settings.method == "peagle" else None
    shape = Shape(llama, len(draft_ids), default_aux_layers(config.num_hidden_layers), mask_token)
    torch.manual_seed(settings.seed)
    return TrainableDrafter(shape, draft_ids, target.embedding).to(target.device)
