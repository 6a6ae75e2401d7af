"""Another program that generates text, made to answer prompts: run as a script by any Python that has it.

It is given one JSON object as its argument: the peer's name, and what it is to load. Its first line says what was
loaded, or that the peer is not installed there. From then on each line that comes, {"ids", "tokens"}, is a prompt to
continue greedily, and each line that goes says which tokens were generated in how many seconds. Needs nothing of
peagle, which the other Python may lack.
"""

import importlib.metadata
import importlib.util
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

Generate = Callable[[list[int], int], list[int]]
"""Continue prompt ids by up to that many tokens."""

MODULES = {"llama.cpp": "llama_cpp", "transformers": "transformers", "vLLM": "vllm"}


def main() -> None:
    """Serve until standard input closes."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what the peer prints is no answer
    order = json.loads(sys.argv[1])
    if importlib.util.find_spec(MODULES[order["peer"]]) is None:
        print(json.dumps({"missing": True}), file=answers)
        return
    load = {"llama.cpp": _llama_cpp, "transformers": _transformers, "vLLM": _vllm}[order["peer"]]
    generate, version, precision = load(order)
    print(json.dumps({"version": version, "precision": precision}), file=answers)
    for line in sys.stdin:
        prompt = json.loads(line)
        began = time.perf_counter()
        ids = generate(prompt["ids"], prompt["tokens"])
        print(json.dumps({"ids": ids, "seconds": time.perf_counter() - began}), file=answers)


def _llama_cpp(order: dict[str, Any]) -> tuple[Generate, str, str]:
    import llama_cpp

    model = llama_cpp.Llama(model_path=order["gguf"], n_ctx=order["context"], n_threads=order["threads"], verbose=False)

    def generate(ids: list[int], tokens: int) -> list[int]:
        reply = []
        model.reset()  # or it would keep the part of the prompt that the last one had in common
        for token in model.generate(ids, temp=0.0):
            reply.append(token)
            if len(reply) == tokens or token == model.token_eos():
                break
        return reply

    kind = model.metadata.get("general.file_type")
    return generate, importlib.metadata.version("llama-cpp-python"), "Q4_1" if kind == "3" else f"file type {kind}"


def _transformers(order: dict[str, Any]) -> tuple[Generate, str, str]:
    import torch
    import transformers

    torch.set_num_threads(order["threads"])
    model = transformers.AutoModelForCausalLM.from_pretrained(order["folder"], dtype=torch.bfloat16)

    def generate(ids: list[int], tokens: int) -> list[int]:
        prompt = torch.tensor([ids])
        with torch.inference_mode():
            reply = model.generate(
                prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=tokens, do_sample=False
            )
        continued: list[int] = reply[0, len(ids) :].tolist()
        return continued

    return generate, transformers.__version__, "bfloat16"


def _vllm(order: dict[str, Any]) -> tuple[Generate, str, str]:
    import vllm

    model = vllm.LLM(
        model=order["folder"],
        dtype="bfloat16",
        max_model_len=order["context"],
        max_num_seqs=1,
        enforce_eager=True,
        enable_prefix_caching=False,
        speculative_config=order.get("speculation"),
        disable_log_stats=True,
    )

    def generate(ids: list[int], tokens: int) -> list[int]:
        sampling = vllm.SamplingParams(temperature=0.0, max_tokens=tokens)
        reply = model.generate({"prompt_token_ids": ids}, sampling, use_tqdm=False)
        return list(reply[0].outputs[0].token_ids)

    return generate, vllm.__version__, "bfloat16"


if __name__ == "__main__":
    main()
