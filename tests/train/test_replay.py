"""Acceptance without running the target: the same as decoding with the engine."""

from pathlib import Path

import pytest
import torch

from peagle_cli.engine.torch.context import Context
from peagle_cli.engine.torch.decode import Lane
from peagle_cli.engine.torch.drafter import DRAFTERS
from peagle_cli.engine.torch.target import Target
from peagle_cli.engine.torch.weights import Weights
from peagle_cli.models.checkpoint import DrafterConfig
from peagle_cli.models.tokenizer import Tokenizer
from peagle_cli.trace.events import Sampling
from peagle_cli.train.conversations import Conversation
from peagle_cli.train.replay import acceptance_by_depth, draft_all, walk
from peagle_cli.train.settings import TrainableMethod
from peagle_cli.train.vllm_format import export, load_weights
from tests.train.conftest import ANSWER_TOKENS, CPU, batch_of, trained_drafter

DEPTH = 3


def test_walk_counts_what_decoding_would_accept() -> None:
    ids = [90, 91, 0, 1, 2, 3, 4, 5]  # a prompt of two tokens, an answer of six
    answer = [False, True, True, True, True, True, True, False]
    wrong = [7, 7]
    drafts = [wrong, [1, 2], wrong, wrong, [4, 7], wrong, wrong, wrong]
    # Behind 0 both are right and 3 is the bonus; behind 3 the first is right, 5 is the bonus, and the answer is over.
    assert walk(ids, answer, drafts, depth=2) == [2, 1]
    assert walk(ids, answer, drafts, depth=1) == [1, 0, 1]


@pytest.mark.parametrize("method", ["eagle3", "peagle"])
def test_replay_equals_decoding(
    method: TrainableMethod,
    target: Target,
    target_folder: Path,
    conversations: list[Conversation],
    tmp_path: Path,
) -> None:
    drafter = trained_drafter(target, conversations, method)
    batch = batch_of(target, drafter, conversations[:8])
    export(drafter, tmp_path)
    load_weights(drafter, tmp_path)
    replayed = acceptance_by_depth(drafter, [batch], (DEPTH,))[DEPTH]
    assert replayed.length > 1.2

    config = DrafterConfig.read(tmp_path, target.config)
    own = DRAFTERS[method](config, Weights(tmp_path, CPU, torch.float32), target, config.aux_layers)
    context = Context(target, {own.method: own}, config.aux_layers)
    drafted = draft_all(drafter, batch, DEPTH).tolist()
    for row, conversation in enumerate(conversations[:8]):
        lane = Lane(
            "test",
            context,
            Tokenizer.load(target_folder),
            conversation.ids[: conversation.prompt],
            method=method,
            depth=DEPTH,
            sampling=Sampling(),
            max_tokens=ANSWER_TOKENS,
        )
        accepted = []
        while not lane.finished:
            batch_event = lane.step()
            if batch_event.drafted:
                accepted.append(min(batch_event.accepted, batch_event.emitted))
        answer = batch.answer[row].tolist()
        assert walk(conversation.ids, answer[: len(conversation.ids)], drafted[row], DEPTH) == accepted
