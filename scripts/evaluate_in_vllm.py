"""Measure drafters' greedy acceptance with vLLM's own counters, beside `peagle train eval`.

Runs in vLLM's interpreter, which need not have peagle:

    python scripts/evaluate_in_vllm.py --model FOLDER --drafter FOLDER --prompts FILE --depth 3 --out RESULTS

The model is a folder of bfloat16 weights with tokenizer. Results are JSON in the form of `peagle train eval --output
json`; both files together make the tables of a model card.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import vllm


def main() -> None:
    """Evaluate every drafter at every depth on every set of prompts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--drafter", type=Path, action="append", required=True)
    parser.add_argument("--prompts", type=Path, action="append", required=True)
    parser.add_argument("--depth", type=int, action="append", required=True)
    parser.add_argument("--out", type=Path, required=True, help="vLLM itself writes to standard output")
    parser.add_argument("--max-tokens", type=int, default=256)
    parser.add_argument("--limit", type=int)
    options = parser.parse_args()
    found = [one for drafter in options.drafter for k in options.depth for one in _evaluations(options, drafter, k)]
    options.out.write_text(json.dumps(found, indent=2) + "\n")


def _evaluations(options: argparse.Namespace, drafter: Path, depth: int) -> Iterator[dict[str, Any]]:
    parallel = "ptd_token_id" in json.loads((drafter / "config.json").read_text())
    speculation = {"method": "eagle3", "model": str(drafter), "num_speculative_tokens": depth}
    if parallel:
        speculation["parallel_drafting"] = True
    llm = vllm.LLM(
        str(options.model),
        dtype="bfloat16",
        max_model_len=2048,
        enforce_eager=True,
        speculative_config=speculation,
        disable_log_stats=False,
    )
    sampling = vllm.SamplingParams(temperature=0, max_tokens=options.max_tokens)
    before = _counters(llm)
    for path in options.prompts:
        prompts = [json.loads(line)["turns"][0] for line in path.read_text().splitlines() if line][: options.limit]
        chats = [[{"role": "user", "content": prompt}] for prompt in prompts]
        # One after the other: in larger batches bfloat16 products round differently, and replies part.
        replies = [llm.chat(chat, sampling, use_tqdm=False)[0] for chat in chats]
        after = _counters(llm)
        drafts, accepted, *positions = (new - old for new, old in zip(after, before, strict=True))
        before = after
        yield {
            "engine": "vllm",
            "precision": "bfloat16",
            "model": options.model.name,
            "drafter": drafter.name,
            "method": "peagle" if parallel else "eagle3",
            "prompts": path.stem,
            "depth": depth,
            "max_tokens": options.max_tokens,
            "replies": len(replies),
            "tokens": sum(len(reply.outputs[0].token_ids) for reply in replies),
            "drafts": drafts,
            "mean_acceptance_length": 1 + accepted / drafts if drafts else None,
            "per_position_acceptance": [count / drafts for count in positions] if drafts else [],
        }


def _counters(llm: Any) -> list[int]:
    """Drafts, accepted tokens, and accepted tokens per position so far."""
    metrics = {metric.name.removeprefix("vllm:spec_decode_num_"): metric for metric in llm.get_metrics()}
    positions = metrics["accepted_tokens_per_pos"].values
    return [metrics["drafts"].value, metrics["accepted_tokens"].value, *positions]


if __name__ == "__main__":
    main()
