"""The packed passes of training see what the engine's drafters see when they draft, slot for slot."""

from pathlib import Path

import pytest
import torch

from peagle_cli.engine.torch.drafter import DRAFTERS, Draft
from peagle_cli.engine.torch.sampling import DraftRule
from peagle_cli.engine.torch.target import Target
from peagle_cli.engine.torch.weights import Weights
from peagle_cli.models.checkpoint import DrafterConfig, check_drafter
from peagle_cli.train.conversations import Conversation
from peagle_cli.train.eagle3 import unroll
from peagle_cli.train.model import TrainableDrafter
from peagle_cli.train.peagle import all_kept, draft_slots
from peagle_cli.train.settings import TrainableMethod
from peagle_cli.train.vllm_format import export, load_weights
from tests.train.conftest import CPU, batch_of, new_drafter, states_of

DEPTH = 4


def engine_draft(target: Target, folder: Path, conversation: Conversation, anchor: int) -> Draft:
    """What the engine's drafter drafts behind a real slot."""
    config = DrafterConfig.read(folder, target.config)
    check_drafter(folder, config, target.config)
    drafter = DRAFTERS[config.method](config, Weights(folder, CPU, torch.float32), target, config.aux_layers)
    states = states_of(target, [conversation])[0]
    ids = torch.tensor(conversation.ids[: anchor + 2])
    return drafter.draft(ids, states[: anchor + 1], drafter.new_cache(), DEPTH, DraftRule(0.0, None))


def packed_logits(drafter: TrainableDrafter, target: Target, conversation: Conversation, anchor: int) -> torch.Tensor:
    """The training passes' scores [DEPTH, Vd] for the same slots, beside another conversation."""
    other = Conversation(conversation.ids[: conversation.prompt + 20], conversation.prompt)
    batch = batch_of(target, drafter, [conversation, other])
    if drafter.mask_hidden is None:
        hidden = [h[0, (anchors == anchor).nonzero()[0, 0]] for h, anchors in unroll(drafter, batch, DEPTH)]
    else:
        slots = draft_slots(drafter, batch, all_kept(batch, DEPTH - 1))
        hidden = [part.hidden[0, (part.anchors[0] == anchor).nonzero()[0, 0]] for part in slots]
    return drafter.outputs(torch.stack(hidden)) @ drafter.lm_head.t()


@pytest.mark.parametrize("method", ["eagle3", "peagle"])
def test_training_passes_equal_drafting(
    method: TrainableMethod, target: Target, conversations: list[Conversation], tmp_path: Path
) -> None:
    drafter = new_drafter(target, conversations, method)
    export(drafter, tmp_path)
    load_weights(drafter, tmp_path)  # rounded to bfloat16, as the engine will read them
    for anchor in (conversations[3].prompt - 1, conversations[3].prompt + 9):
        draft = engine_draft(target, tmp_path, conversations[3], anchor)
        # The true tokens of the training pass: what the engine's drafter drafted and fed to itself.
        ids = conversations[3].ids[: anchor + 2] + draft.ids + conversations[3].ids[anchor + 2 + DEPTH :]
        packed = packed_logits(drafter, target, Conversation(ids, conversations[3].prompt), anchor)
        torch.testing.assert_close(packed, draft.logits, rtol=1e-3, atol=1e-3)


def test_export_can_be_a_start(target: Target, conversations: list[Conversation], tmp_path: Path) -> None:
    one, two = (new_drafter(target, conversations, "peagle") for _ in range(2))
    export(one, tmp_path)
    with torch.no_grad():
        for parameter in two.parameters():
            parameter.zero_()
    load_weights(two, tmp_path)
    for (name, left), right in zip(one.named_parameters(), two.parameters(), strict=True):
        torch.testing.assert_close(left, right, rtol=1e-2, atol=1e-3, msg=name)
