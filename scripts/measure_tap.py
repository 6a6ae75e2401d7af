"""Measure what the tap costs a vLLM server; `docs/vllm.md` says what was found.

Runs in vLLM's interpreter, which need not have peagle:

    PYTHONPATH=. python scripts/measure_tap.py --model FOLDER --drafter FOLDER --concurrency 1 16

The same requests are served again and again in one process: by vLLM's own scheduler, by the tapped one with nobody
listening, and with a listener in another process; each goes first in turn. Greedy decoding makes the work the same
every time. Two figures come of it: the processor time of a run against that of the untapped run beside it, which a busy
machine hardly disturbs, and the time that each step spends in the tap's own code, by the clock.
"""

import argparse
import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

# One process, so that its processor time is the server's; on the model runner that is measured elsewhere, too.
os.environ |= {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_USE_V2_MODEL_RUNNER": "0"}
os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")  # GiB
os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")

import vllm
from vllm.v1.core.sched.scheduler import Scheduler

from peagle_cli.engine.vllm import wire
from peagle_cli.engine.vllm.tap import TapScheduler

METHODS = ("add_request", "schedule", "update_from_output", "update_draft_token_ids")
ARMS = ("untapped", "unheard", "heard")
TOKENS = 64  # of each reply

LISTENER = """
import os, sys, zmq
socket = zmq.Context().socket(zmq.SUB)
socket.setsockopt(zmq.SUBSCRIBE, b"")
socket.connect(sys.argv[1])
while os.getppid() == int(sys.argv[2]):
    if socket.poll(1000):
        socket.recv()
"""


class Clock:
    """Seconds in vLLM's scheduler, and in it and the tap together, since the latest step began; and by step, those in
    the tap alone."""

    def __init__(self) -> None:
        self.inner = self.outer = 0.0
        self.own: list[float] = []

    def step(self) -> None:
        """Another step begins."""
        self.own.append(self.outer - self.inner)
        self.inner = self.outer = 0.0


CLOCK = Clock()


class Measured(TapScheduler):
    """The tapped scheduler, or with `tapped` unset the one behind it."""

    tapped = True


def _timed(name: str) -> Callable[..., Any]:
    tapped, untapped = getattr(TapScheduler, name), getattr(Scheduler, name)

    def inner(*args: Any, **kwargs: Any) -> Any:
        began = time.perf_counter()
        try:
            return untapped(*args, **kwargs)
        finally:
            CLOCK.inner += time.perf_counter() - began

    def outer(self: Measured, *args: Any, **kwargs: Any) -> Any:
        if not self.tapped:
            return untapped(self, *args, **kwargs)
        if name == "schedule":
            CLOCK.step()
        began = time.perf_counter()
        try:
            return tapped(self, *args, **kwargs)
        finally:
            CLOCK.outer += time.perf_counter() - began

    setattr(Scheduler, name, inner)
    return outer


for _name in METHODS:
    setattr(Measured, _name, _timed(_name))


def main() -> None:
    """Measure, and print a line for each number of requests at once."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--drafter", required=True)
    parser.add_argument("--depth", type=int, default=7)
    parser.add_argument("--concurrency", type=int, nargs="+", default=[1])
    parser.add_argument("--rounds", type=int, default=12, help="runs of each kind")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="peagle-") as folder:
        os.environ["PEAGLE_TAP"] = f"ipc://{folder}"
        llm = _open(options)
        for concurrency in options.concurrency:
            sys.stdout.write(_measure(llm, concurrency, options.rounds) + "\n")
            sys.stdout.flush()


def _open(options: argparse.Namespace) -> vllm.LLM:
    return vllm.LLM(
        options.model,
        dtype="bfloat16",
        max_model_len=1024,
        max_num_seqs=max(options.concurrency),
        enforce_eager=True,
        enable_prefix_caching=False,
        async_scheduling=False,
        scheduler_cls=Measured,
        worker_extension_cls=wire.EXTENSION,
        speculative_config={
            "method": "eagle3",
            "model": options.drafter,
            "num_speculative_tokens": options.depth,
            "parallel_drafting": True,
        },
    )


def _measure(llm: vllm.LLM, concurrency: int, rounds: int) -> str:
    seconds: dict[str, list[float]] = {arm: [] for arm in ARMS}
    steps: dict[str, list[float]] = {arm: [] for arm in ARMS}
    orders = itertools.cycle([ARMS[i:] + ARMS[:i] for i in range(len(ARMS))])
    _run(llm, concurrency, "untapped")  # the warm-up
    for order in itertools.islice(orders, rounds):
        for arm in order:
            CLOCK.own.clear()
            seconds[arm].append(_run(llm, concurrency, arm))
            steps[arm] += CLOCK.own[1:]
    untapped = statistics.median(seconds["untapped"])
    lines = [f"{concurrency} at once, {rounds} runs of each kind, {untapped:.2f} s of processor time each"]
    for arm in ARMS[1:]:
        ratios = [now / then - 1 for now, then in zip(seconds[arm], seconds["untapped"], strict=True)]
        low, middle, high = statistics.quantiles(ratios, n=4)
        own = statistics.median(steps[arm])
        share = own * len(steps[arm]) / rounds / untapped
        lines.append(
            f"  {arm}: {own * 1e6:.0f} µs in the tap per step, {share:.2%} of that time (median of {len(steps[arm])}); "
            f"processor time {middle:+.2%} (quartiles {low:+.2%} to {high:+.2%})"
        )
    return "\n".join(lines)


def _run(llm: vllm.LLM, concurrency: int, arm: str) -> float:
    """The processor time of one run, in seconds."""
    Measured.tapped = arm != "untapped"
    listener = _listener() if arm == "heard" else None
    try:
        prompts = [f"Name {n + 2} rivers and tell where they run." for n in range(concurrency)]
        messages = [[{"role": "user", "content": prompt}] for prompt in prompts]
        sampling = vllm.SamplingParams(temperature=0, max_tokens=TOKENS, ignore_eos=True)
        began = time.process_time()
        llm.chat(messages, sampling, use_tqdm=False)
        return time.process_time() - began
    finally:
        if listener is not None:
            listener.kill()
            listener.wait()


def _listener() -> "subprocess.Popen[bytes]":
    address = wire.events_address(os.environ["PEAGLE_TAP"])
    listener = subprocess.Popen([sys.executable, "-c", LISTENER, address, str(os.getpid())])
    time.sleep(1.5)  # until it has subscribed
    return listener


if __name__ == "__main__":
    main()
