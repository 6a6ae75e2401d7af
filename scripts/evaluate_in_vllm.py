"""Measure drafters' greedy acceptance with vLLM's own counters, beside `peagle train eval`.

Runs in vLLM's interpreter, which need not have peagle:

    python scripts/evaluate_in_vllm.py --model FOLDER --drafter FOLDER --prompts FILE --depth 3 --out RESULTS

The model is a folder of bfloat16 weights with tokenizer. Results are JSON in the form of `peagle train eval --output
json`, kept after every drafter and depth; both files together make the tables of a model card.

With `--batch` several replies are written at once, which takes less time. Products over more rows round differently,
so replies part sooner from those of other engines; steps are counted reply by reply either way.
"""

import argparse
import gc
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# One process, so that vLLM is imported once; on its first model runner, which alone runs P-EAGLE.
os.environ |= {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_USE_V2_MODEL_RUNNER": "0"}
os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")  # GiB

import vllm
from vllm.distributed import cleanup_dist_env_and_memory


def main() -> None:
    """Evaluate every drafter at every depth on every set of prompts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--drafter", type=Path, action="append", required=True)
    parser.add_argument("--prompts", type=Path, action="append", required=True)
    parser.add_argument("--depth", type=int, action="append", required=True)
    parser.add_argument("--out", type=Path, required=True, help="vLLM itself writes to standard output")
    parser.add_argument("--max-tokens", type=int, default=256)
    parser.add_argument("--limit", type=int, help="use so many prompts of a set at most")
    parser.add_argument("--batch", type=int, default=1, help="replies at once")
    options = parser.parse_args()
    found: list[dict[str, Any]] = []
    for drafter in options.drafter:
        for depth in options.depth:
            found += _evaluations(options, drafter, depth)
            options.out.write_text(json.dumps(found) + "\n")
            gc.collect()
            cleanup_dist_env_and_memory()


def _evaluations(options: argparse.Namespace, drafter: Path, depth: int) -> Iterator[dict[str, Any]]:
    parallel = "ptd_token_id" in json.loads((drafter / "config.json").read_text())
    speculation = {"method": "eagle3", "model": str(drafter), "num_speculative_tokens": depth}
    if parallel:
        speculation["parallel_drafting"] = True
    llm = vllm.LLM(
        str(options.model),
        dtype="bfloat16",
        max_model_len=2048,
        max_num_seqs=options.batch,
        enforce_eager=True,
        speculative_config=speculation,
        per_request_spec_decode_metrics="detailed",
    )
    sampling = vllm.SamplingParams(temperature=0, max_tokens=options.max_tokens)
    for path in options.prompts:
        prompts = [json.loads(line)["turns"][0] for line in path.read_text().splitlines() if line][: options.limit]
        outputs = llm.chat([[{"role": "user", "content": prompt}] for prompt in prompts], sampling)
        replies = [output.outputs[0] for output in outputs]
        by_reply = [{"ids": list(reply.token_ids), "accepted": _accepted(reply)} for reply in replies]
        accepted = [count for reply in by_reply for count in reply["accepted"]]
        drafts = len(accepted)
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
            "tokens": sum(len(reply.token_ids) for reply in replies),
            "drafts": drafts,
            "mean_acceptance_length": 1 + sum(accepted) / drafts if drafts else None,
            "per_position_acceptance": [sum(n > i for n in accepted) / drafts for i in range(depth) if drafts],
            "by_reply": by_reply,
        }


def _accepted(reply: Any) -> list[int]:
    """How many tokens each step of a reply accepted. A reply that ends with its first token has no steps."""
    return list(reply.spec_decode_metrics.per_step_accepted) if reply.spec_decode_metrics else []


if __name__ == "__main__":
    main()
