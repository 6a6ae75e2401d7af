"""Drafters with their caches against the naive computation of the whole sequence."""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from peagle_cli.engine.torch.drafter import Draft, Drafter
from peagle_cli.engine.torch.sampling import DraftRule
from peagle_cli.engine.torch.target import Target
from peagle_cli.trace.events import Method
from tests.engine.torch import reference, small

DEPTH = 4
GREEDY = DraftRule(0.0, None)


class Case:
    """A drafter, a sequence of 20 tokens, and the inputs of its 19 slots."""

    def __init__(self, folder: Path, target: Target, method: Method, layers: int, config: dict[str, Any]) -> None:
        small.write_drafter(folder / "drafter", target, method, layers=layers, **config)
        self.weights = load_file(folder / "drafter" / "model.safetensors")
        self.drafter: Drafter = small.load_drafter(folder / "drafter", target)
        self.target = target
        self.config = config
        self.ids = torch.randint(small.VOCAB, (20,), generator=torch.Generator().manual_seed(4))
        self.embeds, self.hidden = small.drafter_inputs(self.weights, target, method, self.ids)

    def draft(self) -> Draft:
        """What the drafter proposes after all 20 tokens, having proposed something after 12 before."""
        _, aux = self.target.forward(self.ids[:-1], self.target.new_cache(), small.ALL_AUX_LAYERS)
        cache = self.drafter.new_cache()
        self.drafter.draft(self.ids[:12], aux, cache, 3, GREEDY)
        assert cache.length == 11
        draft = self.drafter.draft(self.ids, aux, cache, DEPTH, GREEDY)
        assert cache.length == 19
        return draft

    def naive(self, embeds: Tensor, hidden: Tensor) -> Tensor:
        return reference.drafter_hidden(self.weights, embeds, hidden, **self.config)


CONFIGS = [{}, {"norm_before_residual": True}]


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("config", CONFIGS)
def test_eagle3_equals_naive(tmp_path: Path, small_target: Target, layers: int, config: dict[str, Any]) -> None:
    case = Case(tmp_path, small_target, "eagle3", layers, config)
    draft = case.draft()
    embeds, hidden = case.embeds, case.hidden
    for i in range(DEPTH):
        out = case.naive(embeds, hidden)[-1:]
        expected = reference.drafter_logits(case.weights, out)
        torch.testing.assert_close(draft.logits[i : i + 1], expected, rtol=1e-3, atol=1e-4)
        assert draft.ids[i] == small.DRAFT_IDS[int(expected.argmax())]
        embeds = torch.cat([embeds, small_target.embedding[draft.ids[i]][None]])
        hidden = torch.cat([hidden, out])


@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("config", CONFIGS)
def test_peagle_equals_naive(tmp_path: Path, small_target: Target, layers: int, config: dict[str, Any]) -> None:
    case = Case(tmp_path, small_target, "peagle", layers, config)
    draft = case.draft()
    mask_embed = small_target.embedding[small.MASK_ID]
    slots = reference.with_masks(case.weights, mask_embed, case.embeds, case.hidden, DEPTH - 1)
    expected = reference.drafter_logits(case.weights, case.naive(*slots)[-DEPTH:])
    torch.testing.assert_close(draft.logits, expected, rtol=1e-3, atol=1e-4)
    assert draft.ids == [small.DRAFT_IDS[i] for i in expected.argmax(-1).tolist()]


def test_a_long_context_is_read_in_pieces(small_drafters: list[Drafter], small_target: Target) -> None:
    ids = torch.randint(small.VOCAB, (60,), generator=torch.Generator().manual_seed(6))
    _, aux = small_target.forward(ids[:-1], small_target.new_cache(), small.ALL_AUX_LAYERS)
    for drafter in small_drafters:
        at_once = drafter.draft(ids, aux, drafter.new_cache(), DEPTH, GREEDY)
        cache = drafter.new_cache()
        for n in (1, 2, 30, 60):
            drafter.read(ids[:n], aux, cache)
            assert cache.length == n - 1
        cache.length = 40
        drafter.read(ids[:-1], aux, cache)
        assert drafter.draft(ids, aux, cache, DEPTH, GREEDY).ids == at_once.ids


def test_sampled_drafts_come_with_their_distribution(small_drafters: list[Drafter], small_target: Target) -> None:
    ids = torch.tensor([0, 1, 2])
    _, aux = small_target.forward(ids[:-1], small_target.new_cache(), small.ALL_AUX_LAYERS)
    for drafter in small_drafters:
        rule = DraftRule(0.5, torch.Generator().manual_seed(1))
        draft = drafter.draft(ids, aux, drafter.new_cache(), 3, rule)
        q = draft.q_over_target(small.VOCAB)
        assert q is not None
        torch.testing.assert_close(q[:, draft.target_ids], (draft.logits / 0.5).softmax(-1))
        assert q.sum(-1).tolist() == pytest.approx([1, 1, 1])
        again = drafter.draft(ids, aux, drafter.new_cache(), 3, DraftRule(0.5, torch.Generator().manual_seed(1)))
        assert again.ids == draft.ids
