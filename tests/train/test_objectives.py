"""Losses and gradients: against plain computations, and with and without the sequence partition."""

import msgspec
import pytest
import torch
import torch.nn.functional as F

from peagle_cli.engine.torch.target import Target
from peagle_cli.train.conversations import Conversation
from peagle_cli.train.loss import CHUNK, Aimed, SoftTargets, learn
from peagle_cli.train.model import TargetHead
from peagle_cli.train.objectives import backward
from peagle_cli.train.peagle import sample_kept
from peagle_cli.train.settings import Settings, TrainableMethod
from tests.train.conftest import batch_of, new_drafter


def test_loss_equals_a_plain_soft_cross_entropy(target: Target, conversations: list[Conversation]) -> None:
    drafter = new_drafter(target, conversations, "eagle3")
    batch = batch_of(target, drafter, conversations[:12])
    head = TargetHead.of(target, drafter.draft_ids)
    targets = SoftTargets.of(batch, head)
    hidden = torch.randn(*batch.ids.shape, drafter.norm.shape[0], requires_grad=True)
    positions = torch.arange(batch.ids.shape[1]).expand_as(batch.ids) + 1
    halves = [Aimed.of(hidden, positions, positions % 2 == odd, targets) for odd in (0, 1)]
    assert len(targets.probs) > CHUNK
    total, learnt = learn(drafter, halves, [2.0, 3.0], targets)
    total.backward()
    got = (hidden.grad, drafter.lm_head.grad)

    hidden.grad = drafter.lm_head.grad = None
    sequences, places = batch.learnable[:, 1:].nonzero(as_tuple=True)
    wanted = head.logits(batch.aux[sequences, places + 1]).softmax(-1)
    losses = F.cross_entropy(drafter.outputs(hidden[sequences, places]) @ drafter.lm_head.t(), wanted, reduction="none")
    odd = (places + 1) % 2
    (losses * (2 + odd)).sum().backward()
    sums = [losses.detach()[odd == i].sum().item() for i in (0, 1)]
    assert [part.loss for part in learnt] == pytest.approx(sums, rel=1e-4)
    for mine, plain in zip(got, (hidden.grad, drafter.lm_head.grad), strict=True):
        torch.testing.assert_close(mine, plain, rtol=1e-4, atol=1e-4)


def test_only_answers_are_learnt(target: Target, conversations: list[Conversation]) -> None:
    drafter = new_drafter(target, conversations, "eagle3")
    batch = batch_of(target, drafter, conversations[:4])
    for row, conversation in enumerate(conversations[:4]):
        predicted = [conversation.ids[j + 1] for j in batch.answer[row].nonzero()[:, 0].tolist()]
        assert predicted == conversation.answer


@pytest.mark.parametrize("size", [7, 16, 50])
def test_partition_leaves_gradients_as_they_are(size: int, target: Target, conversations: list[Conversation]) -> None:
    whole = Settings(method="peagle", keep=0.8, segment=10_000)
    gradients, figures = [], []
    for settings in (whole, msgspec.structs.replace(whole, segment=size)):
        drafter = new_drafter(target, conversations, "peagle", layers=3)
        batch = batch_of(target, drafter, conversations[:6])
        targets = SoftTargets.of(batch, TargetHead.of(target, drafter.draft_ids))
        learnt = backward(drafter, batch, targets, settings, torch.Generator().manual_seed(1))
        figures.append([(part.slots, part.agreed, round(part.loss, 2)) for part in learnt])
        gradients.append({name: parameter.grad for name, parameter in drafter.named_parameters()})
    assert figures[0] == figures[1]
    for name, gradient in gradients[0].items():
        assert gradient is not None
        torch.testing.assert_close(gradients[1][name], gradient, rtol=1e-3, atol=1e-6, msg=name)


def test_drops_keep_a_draft_whole_and_the_shares_right(target: Target, conversations: list[Conversation]) -> None:
    drafter = new_drafter(target, conversations, "peagle")
    batch = batch_of(target, drafter, conversations[:8])
    kept = sample_kept(batch, 5, 0.7, torch.Generator().manual_seed(0))
    anchors = (batch.answer[:, 1:-1] & batch.answer[:, 2:]).sum(1)
    assert kept.max() == 5
    for depth in range(1, 6):
        expected = (anchors * 0.7**depth).round()
        assert torch.equal((kept >= depth).sum(1), expected.long())


@pytest.mark.parametrize("method", ["eagle3", "peagle"])
def test_a_few_steps_lower_the_loss(method: TrainableMethod, target: Target, conversations: list[Conversation]) -> None:
    drafter = new_drafter(target, conversations, method)
    batch = batch_of(target, drafter, conversations[:8])
    targets = SoftTargets.of(batch, TargetHead.of(target, drafter.draft_ids))
    optimiser = torch.optim.Adam(drafter.parameters(), lr=1e-2)
    losses = []
    for step in range(12):
        optimiser.zero_grad()
        learnt = backward(drafter, batch, targets, Settings(method=method), torch.Generator().manual_seed(step))
        losses.append(sum(part.loss for part in learnt) / sum(part.slots for part in learnt))
        optimiser.step()
    assert losses[-1] < losses[0]
