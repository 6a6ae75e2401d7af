"""Starts a vLLM server as a child, waits until it answers, ends it, and says in a sentence why it did not start.

The child listens on a free port of the loopback interface, writes to a log of its own, and is guarded (`guard.py`).
"""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

import peagle_cli
from peagle_cli.engine.logs import last_lines, log_says, new_log
from peagle_cli.engine.vllm import preflight, wire
from peagle_cli.engine.vllm.installation import Installation
from peagle_cli.engine.vllm.preflight import HOST, Drafter
from peagle_cli.engine.vllm.server import Server
from peagle_cli.errors import PeagleError
from peagle_cli.models.progress import OnProgress, Progress
from peagle_cli.text import one_line

ASYNCHRONOUS = "--async-scheduling"
CPU_BATCH = 64
"""Requests at once on a CPU, where nothing else is asked for."""

KILLED = 256 - signal.SIGKILL
"""The guard's exit code when the server was killed."""

_PATH = "path"  # in a server's folder, what it imports of ours
_POLL_S = 0.2
_CLOSE_S = 10.0  # the guard's patience, and some for itself
_LOG_BYTES = 200_000  # of the log's end are searched for what went wrong


class Plan(msgspec.Struct, frozen=True):
    """A server to start, that serves `target` as `name`.

    `depth` is the number of tokens to draft per step; None for `drafter` means no speculation; `method` is what people
    call the two. `gpu_share` is the part of a GPU's memory that it may take. `flags` are for vLLM, and come last.
    """

    name: str
    method: str
    target: Path
    drafter: Drafter | None
    depth: int
    dtype: str | None = None
    gpu_share: float | None = None
    flags: tuple[str, ...] = ()

    @property
    def asynchronous(self) -> bool:
        """Whether asynchronous scheduling was asked for."""
        return ASYNCHRONOUS in self.flags


class UnwantedError(PeagleError):
    """A server that was waited for is not wanted any more."""


class Launch:
    """A server that starts, runs, and ends with `close`, which any thread may call at any time."""

    def __init__(self, plan: Plan, installation: Installation) -> None:
        self.plan = plan
        self.log = new_log()
        self.folder = Path(tempfile.mkdtemp(prefix="peagle-"))  # mode 0700
        self.tap = _tap(self.folder)
        asked = preflight.value_of(plan.flags, "--port")  # free to begin with; only one server can have it
        self.port = int(asked) if asked and preflight.is_free(asked) else free_port()
        self._version = installation.version
        self._closing = threading.Lock()
        (self.folder / _PATH).mkdir()
        package_beside(self.folder / _PATH)
        self._guard = subprocess.Popen(
            [
                *(sys.executable, "-P", "-m", "peagle_cli.engine.vllm.guard", str(self.log), str(self.folder)),
                *command(plan, installation, self.port),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd=self.folder,
            env=environment(installation, self.folder),
        )

    @property
    def running(self) -> bool:
        """Whether the server has not ended."""
        return self._guard.poll() is None

    @property
    def server(self) -> Server:
        """How to talk to it."""
        return Server(f"http://{HOST}:{self.port}")

    def wait(self, on_progress: OnProgress, wanted: Callable[[], bool] = lambda: True) -> None:
        """Wait until the server answers, and tell every second how long it has taken and what it logged last.

        Raises `PeagleError` when it ends before, by `close` too; `UnwantedError` once it is not `wanted` any more.
        """
        began = time.monotonic()
        told = -1
        while self.running:
            if self.server.is_healthy():
                return
            if not wanted():
                raise UnwantedError("The server was not waited for.")
            if (seconds := int(time.monotonic() - began)) > told:
                told = seconds
                on_progress(Progress(f"Starting vLLM ({self.plan.method}){_stage(seconds, last_lines(self.log))}"))
            time.sleep(_POLL_S)
        raise self.failure()

    def failure(self) -> PeagleError:
        """Why the server has ended, in a sentence, with the place of its log."""
        code = self._guard.wait()
        if code == KILLED:
            return PeagleError(
                "The vLLM server was killed, by another program or by the system for want of memory.",
                log_says(self.log),
            )
        told = _diagnosis(last_lines(self.log, _LOG_BYTES))
        hint = f"Its log is {self.log}" if told else log_says(self.log)
        if not self._version.startswith(wire.MADE_FOR):
            hint = f"peagle was made for vLLM {wire.MADE_FOR}, and this is {self._version}. {hint}"
        return PeagleError(told or f"The vLLM server ended with exit code {code}.", hint)

    def close(self) -> None:
        """End the server and all it started."""
        with self._closing:
            if self._guard.stdin and not self._guard.stdin.closed:
                with contextlib.suppress(OSError):
                    self._guard.stdin.close()
            try:
                self._guard.wait(_CLOSE_S)
            except subprocess.TimeoutExpired:
                self._guard.kill()  # the kernel ends the server with it
                self._guard.wait()
            shutil.rmtree(self.folder, ignore_errors=True)  # where the guard was killed before it could


def command(plan: Plan, installation: Installation, port: int) -> list[str]:
    """The command line of a server."""
    arguments = [
        *(str(installation.python), "-P", "-m", "vllm.entrypoints.openai.api_server"),
        *("--model", str(plan.target), "--served-model-name", plan.name, "--host", HOST),
        *tap_flags(asynchronous=plan.asynchronous),
    ]
    if plan.dtype:
        arguments += ["--dtype", plan.dtype]
    batch = int(preflight.value_of(plan.flags, "--max-num-seqs") or CPU_BATCH)
    if installation.cpu:
        arguments += ["--enforce-eager", "--max-num-seqs", str(batch)]
    if plan.gpu_share is not None:
        arguments += ["--gpu-memory-utilization", f"{plan.gpu_share:.3g}"]
    if plan.drafter:
        if plan.drafter.context and preflight.value_of(plan.flags, "--max-model-len") is None:
            longest = _context(plan)
            if longest:
                arguments += ["--max-model-len", str(longest)]
        speculation = speculative_config(plan.drafter, plan.depth, batch if installation.cpu else None)
        arguments += ["--speculative-config", msgspec.json.encode(speculation).decode()]
    return [*arguments, *plan.flags, "--port", str(port)]


def tap_flags(*, asynchronous: bool) -> list[str]:
    """The flags that put the tap into a server."""
    scheduling = ASYNCHRONOUS if asynchronous else "--no-async-scheduling"
    return [
        *("--scheduler-cls", wire.ASYNC_SCHEDULER if asynchronous else wire.SCHEDULER, scheduling),
        *("--worker-extension-cls", wire.EXTENSION, "--stream-interval", "1"),
    ]


def speculative_config(drafter: Drafter, depth: int, cpu_batch: int | None) -> dict[str, object]:
    """What `--speculative-config` is given for a drafter.

    On a CPU with up to `cpu_batch` requests at once, the depth is given per batch size: vLLM then does not pad short
    prompts with drafts that are none, which its sampler for CPUs reads, and EAGLE-3 can draft fewer tokens.
    """
    config: dict[str, object] = {
        "method": "eagle3",
        "model": str(drafter.folder),
        "num_speculative_tokens": depth,
    }
    if drafter.method == "peagle":
        config["parallel_drafting"] = True
    if cpu_batch:
        config["num_speculative_tokens_per_batch_size"] = [[1, cpu_batch, depth]]
    return config


def environment(installation: Installation, folder: Path) -> dict[str, str]:
    """The variables of a server that has `folder` for itself, its sockets too. P-EAGLE runs on vLLM's first model
    runner only, so that all are to run on it."""
    ours = {
        "PEAGLE_TAP": _tap(folder),
        "PYTHONPATH": str(folder / _PATH),
        "VLLM_RPC_BASE_PATH": str(folder),
        "VLLM_USE_V2_MODEL_RUNNER": "0",
        "HF_HUB_OFFLINE": "1",
    }
    return {**defaults(installation), **os.environ, **ours}


def defaults(installation: Installation) -> dict[str, str]:
    """The variables of whatever runs this vLLM, unless a user sets them."""
    variables = {"VLLM_NO_USAGE_STATS": "1", "TOKENIZERS_PARALLELISM": "false"}
    if installation.cpu:
        variables["VLLM_CPU_KVCACHE_SPACE"] = "1"  # GiB
        openmp = installation.prefix / "lib" / "libiomp5.so"
        if openmp.exists():
            variables["LD_PRELOAD"] = str(openmp)
    return variables


def package_beside(folder: Path) -> None:
    """Make the package importable from `folder`, and nothing of what is installed beside it."""
    link = folder / "peagle_cli"
    package = Path(peagle_cli.__file__).parent
    if link.is_symlink() and link.resolve() == package.resolve():
        return
    with contextlib.suppress(FileNotFoundError):
        link.unlink()
    link.symlink_to(package, target_is_directory=True)


def free_port() -> int:
    """A port of the loopback interface that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _tap(folder: Path) -> str:
    """Where the tap of a server listens that has `folder` for itself."""
    return f"ipc://{folder}"


def _context(plan: Plan) -> int | None:
    """The drafter's context, where the target's is longer."""
    raw = preflight.target_context(plan.target)
    own = plan.drafter.context if plan.drafter else None
    return own if own and raw and own < raw else None


def _stage(seconds: int, lines: Sequence[str]) -> str:
    """How far a server is that has been starting for so long: ": 35 s, Loading weights took 1.2 seconds"."""
    logged = [found[1] for line in lines if (found := _LOGGED.match(line))]
    told = [f"{seconds} s"] if seconds else []
    told += [one_line(line)[:70].rstrip(": ") for line in logged[-1:]]
    return f": {', '.join(told)}" if told else ""


_LOGGED = re.compile(r"^(?:\([^)]*\) )?(?:DEBUG|INFO|WARNING|ERROR) \d\d-\d\d \d\d:\d\d:\d\d \[[^]]*\] *([A-Z].{8,})$")
"""A line of vLLM's own log that says something, and not what its libraries print."""

_KNOWN = (
    (r"unrecognized arguments: (.+)", "This vLLM does not know {0}."),
    (r"error: argument (.+)", "vLLM refuses an argument: {0}"),
    (r"No module named '(peagle_cli[^']*|vllm[^']*)'", "The Python that runs vLLM cannot import {0}."),
    (r"No module named '(zmq|msgspec)'", "The Python that runs vLLM has no {0}, which peagle's tap needs."),
    (r"TapError: (.+)", "{0}"),
    (r"address already in use", "The port is in use by another program."),
    (r"(?:CUDA|HIP) out of memory|OutOfMemoryError", "The GPU has too little memory for this model."),
    (r"No available memory for the cache blocks", "No memory is left for the context's cache."),
    (r"Available memory on node .* is less than requested", "Too little memory is left for the context's cache."),
    (r"Free memory on device .* is less than desired", "Another program uses the GPU's memory."),
    (r"KV cache is needed, which is larger than the available", "The whole context does not fit into the cache."),
    (r"Not enough memory|Cannot allocate memory", "The machine has too little memory for this model."),
    (
        r"size mismatch|shape mismatch|Attempted to load weight",
        "The drafter's weights have other sizes than vLLM expects.",
    ),
    (
        r"(?:^|[)\]] )((?:\w+\.)*(?:Value|Type|Runtime|NotImplemented|Assertion|Import|OS|Validation)Error: .+)",
        "vLLM failed: {0}",
    ),
    (
        r"EngineDeadError",
        "vLLM's engine process ended while it served; another program may have killed it, or the system for want of "
        "memory.",
    ),
)


def _diagnosis(lines: Sequence[str]) -> str:
    """The first of the known causes that a log names; "" for none."""
    for pattern, sentence in _KNOWN:
        for line in lines:
            if found := re.search(pattern, line):
                told = sentence.format(*(group.strip() for group in found.groups()))
                return told if told.endswith((".", "!", "?")) else f"{told}."
    return ""
