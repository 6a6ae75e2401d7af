"""A drafter's evaluation by two engines, whose replies to the second prompt part at its third token."""

from msgspec.structs import replace

from peagle_cli.train.evaluate import Evaluation, Reply

OURS = Evaluation(
    engine="torch",
    precision="bfloat16",
    model="target",
    drafter="drafter",
    method="peagle",
    prompts="mt_bench",
    depth=3,
    max_tokens=5,
    replies=2,
    tokens=10,
    drafts=4,
    mean_acceptance_length=2.25,
    per_position_acceptance=(0.75, 0.25, 0.25),
    by_reply=(Reply(ids=(1, 2, 3, 4, 5), accepted=(1, 1)), Reply(ids=(1, 2, 3, 4, 5), accepted=(0, 3))),
)
THEIRS = replace(
    OURS,
    engine="vllm",
    drafts=5,
    mean_acceptance_length=1.8,
    per_position_acceptance=(0.6, 0.2, 0.0),
    by_reply=(Reply(ids=(1, 2, 3, 4, 5), accepted=(1, 1)), Reply(ids=(1, 2, 9, 9, 9), accepted=(0, 0, 2))),
)
