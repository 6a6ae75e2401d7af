"""Evaluation: the same acceptance as decoding at each depth on its own."""

from pathlib import Path

import pytest

from peagle_cli.engine.protocol import EngineSpec, Message
from peagle_cli.engine.torch.decode import Lane
from peagle_cli.engine.torch.engine import TorchEngine
from peagle_cli.engine.torch.target import Target
from peagle_cli.errors import BadInputError
from peagle_cli.text import json_document
from peagle_cli.trace.events import Method, Sampling
from peagle_cli.train.conversations import Conversation
from peagle_cli.train.convoy import accepted_by_depth
from peagle_cli.train.evaluate import Reply, evaluate, read_evaluations
from peagle_cli.train.settings import TrainableMethod
from peagle_cli.train.vllm_format import export
from tests.train.conftest import trained_drafter

PROMPTS = ["Name a hill.", "Why?"]
DEPTHS = (1, 2, 5)
TOKENS = 40


@pytest.fixture(scope="module")
def engine(
    target: Target, target_folder: Path, conversations: list[Conversation], tmp_path_factory: pytest.TempPathFactory
) -> TorchEngine:
    folder = tmp_path_factory.mktemp("drafters")
    methods: tuple[TrainableMethod, ...] = ("eagle3", "peagle")
    for method in methods:
        export(trained_drafter(target, conversations, method), folder / method)
    drafters = tuple(str(folder / method) for method in methods)
    return TorchEngine.open(EngineSpec(model=str(target_folder), drafters=drafters, device="cpu", dtype="float32"))


def decoded(engine: TorchEngine, prompt: list[int], method: Method, depth: int) -> tuple[list[int], list[int]]:
    """What each step of the engine's decode loop accepts, and the reply."""
    lane = Lane(
        "alone",
        engine.new_context(),
        engine.tokenizer,
        prompt,
        method=method,
        depth=depth,
        sampling=Sampling(),
        max_tokens=TOKENS,
    )
    batches = []
    while not lane.finished:
        batches.append(lane.step())
    return [batch.accepted for batch in batches[1:]], [token.id for batch in batches for token in batch.tokens]


@pytest.mark.parametrize("method", ["eagle3", "peagle"])
def test_depths_together_accept_what_each_does_alone(
    method: Method, engine: TorchEngine, conversations: list[Conversation]
) -> None:
    prompts = [conversation.ids[: conversation.prompt] for conversation in conversations[:4]]
    context = engine.new_context()
    total = 0
    for prompt in prompts:
        together, reply = accepted_by_depth(context, prompt, method, DEPTHS, TOKENS, engine.tokenizer.eos_ids)
        assert {depth: (steps, reply) for depth, steps in together.items()} == {
            depth: decoded(engine, prompt, method, depth) for depth in DEPTHS
        }
        total += sum(together[max(DEPTHS)])
    assert total > len(prompts)  # else there would be nothing to get wrong


def test_an_evaluation_has_vllms_figures_and_can_be_read_again(engine: TorchEngine, tmp_path: Path) -> None:
    found = evaluate(engine, {"two": PROMPTS}, DEPTHS, TOKENS, lambda: None)
    assert [(one.method, one.depth) for one in found] == [(m, k) for m in ("eagle3", "peagle") for k in DEPTHS]
    for one in found:
        replies = [decoded(engine, chat(engine, prompt), one.method, one.depth) for prompt in PROMPTS]
        accepted = [count for steps, _ in replies for count in steps]
        assert (one.drafts, one.tokens) == (len(accepted), sum(len(ids) for _, ids in replies))
        assert one.mean_acceptance_length == 1 + sum(accepted) / len(accepted)
        assert sum(one.per_position_acceptance) == pytest.approx(one.mean_acceptance_length - 1)
        for reply, (steps, ids) in zip(one.by_reply, replies, strict=True):
            assert reply == Reply(ids=tuple(ids), accepted=tuple(steps))
    path = tmp_path / "evaluation.json"
    path.write_text(json_document(found))
    assert read_evaluations(path) == found


def chat(engine: TorchEngine, prompt: str) -> list[int]:
    return engine.tokenizer.chat_ids((Message("user", prompt),))


def test_what_does_not_fit_is_refused(engine: TorchEngine) -> None:
    with pytest.raises(BadInputError, match="the context is"):
        evaluate(engine, {"two": PROMPTS}, DEPTHS, 100_000, lambda: None)
    with pytest.raises(BadInputError, match="tokens at most"):
        evaluate(engine, {"two": PROMPTS}, (1000,), 10, lambda: None)
