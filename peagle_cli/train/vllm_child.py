"""Continues texts with vLLM's offline interface: a program for the Python that has vLLM, which needs nothing of ours.

Its argument is a JSON object of parameters for vLLM's `LLM`. Each line of standard input is a JSON array of orders,
`[ids, max_tokens, temperature, seed]`; for each of them, in the order in which they come to their end, a line
`[index, ids]` is written to standard output. The first line is `null`: ready. It ends with its standard input, whatever
it is doing.
"""

import json
import os
import queue
import sys
import threading
from typing import Any, TextIO


def main() -> None:
    """Serve until the input ends."""
    results = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # vLLM says on standard output what is meant for logs
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(lines,), daemon=True).start()
    from vllm import LLM, SamplingParams  # noqa: PLC0415  (takes seconds, in which the input may end)

    engine = LLM(**json.loads(sys.argv[1])).llm_engine
    _say(results, None)
    while True:
        for index, (ids, max_tokens, temperature, seed) in enumerate(json.loads(lines.get())):
            sampling = SamplingParams(max_tokens=max_tokens, temperature=temperature, seed=seed)
            engine.add_request(str(index), {"prompt_token_ids": ids}, sampling)
        while engine.has_unfinished_requests():
            for output in engine.step():
                if output.finished:
                    _say(results, [int(output.request_id), list(output.outputs[0].token_ids)])


def _listen(lines: "queue.SimpleQueue[str]") -> None:
    for line in sys.stdin:
        lines.put(line)
    os._exit(0)


def _say(results: TextIO, what: Any) -> None:
    results.write(json.dumps(what) + "\n")
    results.flush()


if __name__ == "__main__":
    main()
