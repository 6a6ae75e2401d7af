"""The distribution that tokens are drawn from, against transformers' own processors."""

import pytest
import torch
from transformers import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from peagle_cli.engine.torch.sampling import DraftRule, draw, probabilities
from peagle_cli.trace.events import Sampling


@pytest.mark.parametrize("temperature", [0.3, 1.0, 1.7])
@pytest.mark.parametrize("top_k", [0, 1, 5, 1000])
@pytest.mark.parametrize("top_p", [0.05, 0.5, 0.9, 1.0])
def test_equals_transformers(temperature: float, top_k: int, top_p: float) -> None:
    logits = torch.randn(6, 40, generator=torch.Generator().manual_seed(3)) * 3
    ids = torch.zeros(6, 1, dtype=torch.long)
    expected = TemperatureLogitsWarper(temperature)(ids, logits)
    if top_k:
        expected = TopKLogitsWarper(top_k)(ids, expected)
    if top_p < 1:
        expected = TopPLogitsWarper(top_p)(ids, expected)
    sampling = Sampling(temperature=temperature, top_k=top_k, top_p=top_p)
    probs = torch.stack([probabilities(row, sampling) for row in logits])
    torch.testing.assert_close(probs, expected.softmax(-1))


def test_one_token_always_remains() -> None:
    logits = torch.tensor([0.0, 5.0, 1.0])
    assert probabilities(logits, Sampling(temperature=1.0, top_p=1e-9)).tolist() == [0.0, 1.0, 0.0]


@pytest.mark.parametrize("temperature", [1e-300, 1e-38, 1e-6])
def test_next_to_no_temperature_is_greedy(temperature: float) -> None:
    logits = torch.tensor([20.0, 30.0, -10.0])
    assert probabilities(logits, Sampling(temperature=temperature)).tolist() == [0.0, 1.0, 0.0]
    ids, _ = DraftRule(temperature, torch.Generator()).choose(logits[None])
    assert ids.tolist() == [1]


def test_a_nucleus_of_most_of_a_large_vocabulary() -> None:
    logits = torch.randn(1, 5000, generator=torch.Generator().manual_seed(3))
    expected = TopPLogitsWarper(0.95)(torch.zeros(1, 1, dtype=torch.long), logits)[0]
    assert int(expected.isfinite().sum()) > 1024
    probs = probabilities(logits[0], Sampling(temperature=1.0, top_p=0.95))
    torch.testing.assert_close(probs, expected.softmax(-1))


def test_draws_follow_the_distribution() -> None:
    probs = torch.tensor([0.0, 0.5, 0.0, 0.3, 0.2, 0.0])
    drawn = draw(probs.expand(20_000, -1) * 7, torch.Generator().manual_seed(1))  # it need not sum to 1
    shares = torch.bincount(drawn, minlength=6) / 20_000
    assert torch.equal(shares == 0, probs == 0)
    torch.testing.assert_close(shares, probs, atol=0.015, rtol=0)


def test_a_seed_reproduces_draws() -> None:
    probs = torch.full((20, 50), 1 / 50)
    first, again = (draw(probs, torch.Generator().manual_seed(7)) for _ in range(2))
    assert torch.equal(first, again)
    assert not torch.equal(first, draw(probs, torch.Generator().manual_seed(8)))
