"""What the screen is measured with: a short reply, said again and again."""

import pytest

from peagle_cli.bench.screen_probe import lengthened
from peagle_cli.trace.events import DraftBatch, Finished
from peagle_cli.trace.metrics import Metrics
from tests.recordings import Recorded


def test_a_reply_is_lengthened_at_an_even_speed(recorded: Recorded) -> None:
    (run,) = lengthened(recorded.load(), tokens=500, tokens_per_s=100.0).runs
    batches = [event for event in run if isinstance(event, DraftBatch)]
    said = sum(batch.emitted for batch in batches)
    assert 500 <= said < 500 + batches[-1].emitted
    assert [batch.step for batch in batches] == list(range(len(batches)))
    assert Metrics(run).tokens_per_second == pytest.approx(100.0, rel=0.05)
    assert list(run.times) == sorted(run.times)
    assert run.whole and isinstance(run[len(run) - 1], Finished)
