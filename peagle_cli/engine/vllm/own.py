"""Servers of our own: one per method, started when a lane first needs it, ended with the engine.

Where memory does not allow another, the one before is ended: replies are then slow to begin, and never timed at once.
"""

import os
import platform
import threading
import time
from collections.abc import Callable

import msgspec

import peagle_cli
from peagle_cli.engine import memory
from peagle_cli.engine.lanes import PREFERRED_METHODS, PUBLISHED_DEPTHS
from peagle_cli.engine.protocol import EngineInfo, EngineSpec, Request
from peagle_cli.engine.vllm import preflight, wire
from peagle_cli.engine.vllm.attempt import Backend
from peagle_cli.engine.vllm.choice import choose
from peagle_cli.engine.vllm.fit import GPU_SHARE, RUNTIME
from peagle_cli.engine.vllm.launch import ASYNCHRONOUS, Launch, Plan
from peagle_cli.engine.vllm.link import TapLink
from peagle_cli.engine.vllm.preflight import Drafter
from peagle_cli.errors import BadInputError, PeagleError
from peagle_cli.models.progress import OnProgress, unheard
from peagle_cli.models.tokenizer import Tokenizer
from peagle_cli.trace.events import METHOD_NAMES, Machine, Method

ENGINE = "vllm"

DEPTH = max(PUBLISHED_DEPTHS.values())
"""Tokens that servers draft per step, where no greater depth is asked for: depths up to it can be chosen live."""

_GONE_S = 5.0  # for a server that broke off to be seen to have ended
_ROOM = 1.5  # times its weights: what a server on a GPU needs to be of use


class Running(msgspec.Struct, frozen=True):
    """A server of ours that answers."""

    launch: Launch
    link: TapLink
    backend: Backend

    def close(self) -> None:
        """Hang up, and end it."""
        self.link.close()
        self.launch.close()


class OwnServers:
    """What `EngineSpec` asks for, on servers of our own. `open` must come first; `close` may come at any time."""

    def __init__(self, spec: EngineSpec) -> None:
        self._spec = spec
        self._lock = threading.RLock()  # of what runs: one server starts at a time
        self._running: dict[Method, Running] = {}
        self._starting: Launch | None = None
        self._closed = False
        self._info: EngineInfo | None = None
        self._on_progress: OnProgress = unheard
        self._drafters: dict[Method, Drafter] = {}

    def open(self, on_progress: OnProgress) -> None:
        """Check what is asked for, fetch what is missing, and start the first server.

        Raises `BadInputError` for what cannot be, `PeagleError` when a server does not start.
        """
        choice = choose(self._spec, on_progress)
        self._installation, self._flags = choice.installation, choice.flags
        self._target, self._model, self._drafters = choice.target, choice.title, choice.drafters
        self._tokenizer = Tokenizer.load(self._target)
        self._on_progress = on_progress
        running = self._start(self._first())
        self._info = self._describe(running.link.hello)

    def _first(self) -> Method:
        """The method whose server is started first: the one asked for, or the best there is."""
        asked = self._spec.method
        if asked is None:
            return next(method for method in PREFERRED_METHODS if method in ("none", *self._drafters))
        if asked != "none" and asked not in self._drafters:
            raise BadInputError(
                f"There is no {METHOD_NAMES[asked]} drafter for {self._model}.", "Name one with --drafter."
            )
        return asked

    @property
    def info(self) -> EngineInfo:
        """What was opened."""
        assert self._info is not None, "opened"
        return self._info

    def check(self, request: Request) -> None:
        """Raise `BadInputError` for a depth that a server which cannot be steered does not have."""
        for lane in request.lanes:
            if not self.info.steerable and lane.method != "none" and lane.depth != self._depth(lane.method):
                raise BadInputError(
                    f"An asynchronous server drafts the {self._depth(lane.method)} tokens per step that it was started "
                    "with.",
                    "Start with the --depth that is wanted, or leave --async-scheduling out.",
                )

    def backend(self, method: Method, wanted: Callable[[], bool] = lambda: True) -> Backend:
        """The server for a method, started if need be. Raises `PeagleError` when it cannot be, `UnwantedError` when it
        was not waited for."""
        with self._lock:
            running = self._running.get(method)
            if running is not None and running.launch.running:
                return running.backend
            if running is not None:
                self._running.pop(method).close()
            return self._start(method, wanted).backend

    def remark(self, backend: Backend) -> str:
        """Nothing: the tap tells all."""
        return ""

    def why_gone(self, backend: Backend, error: PeagleError) -> PeagleError:
        """How the server ended, where it has."""
        running = next((each for each in self._running.values() if each.backend is backend), None)
        if isinstance(error, BadInputError) or running is None:
            return error
        deadline = time.monotonic() + _GONE_S
        while running.launch.running and time.monotonic() < deadline:
            time.sleep(0.05)
        return error if running.launch.running else running.launch.failure()

    def close(self) -> None:
        """End all servers, one that starts too."""
        self._closed = True
        if starting := self._starting:
            starting.close()
        with self._lock:
            while self._running:
                self._running.popitem()[1].close()

    def _start(self, method: Method, wanted: Callable[[], bool] = lambda: True) -> Running:
        with self._lock:
            self._make_room(method)
            drafter = self._drafters.get(method)
            plan = Plan(
                name=self._model,
                method=METHOD_NAMES[method],
                target=self._target,
                drafter=drafter,
                depth=self._depth(method),
                dtype=self._spec.dtype,
                gpu_share=None if self._installation.cpu else self._gpu_share(),
                flags=self._flags,
            )
            launch = Launch(plan, self._installation)
            self._starting = launch
            try:
                if self._closed:
                    raise PeagleError("The engine was closed while a server started.")
                launch.wait(self._on_progress, wanted)
                link = TapLink.connect(launch.tap)
                if link is None:
                    raise PeagleError("The server answers, and its tap does not.", f"Its log is {launch.log}")
            except BaseException:
                launch.close()
                raise
            finally:
                self._starting = None
            backend = Backend(
                launch.server, self._model, link, plan.depth if drafter else 0, True, self._tokenizer.stream
            )
            self._running[method] = Running(launch, link, backend)
            return self._running[method]

    def _depth(self, method: Method) -> int:
        """What a server for `method` drafts per step. Below that, EAGLE-3 on a GPU still pays for every pass, and an
        asynchronous server cannot go: a depth that is asked for is then all they get."""
        asked = self._spec.depth or 0
        fixed = ASYNCHRONOUS in self._spec.flags or (method == "eagle3" and not self._installation.cpu)
        if asked and fixed:
            return asked
        return max(DEPTH, asked)

    def _make_room(self, method: Method) -> None:
        """End servers until another fits into memory beside those that are left."""
        while self._running and not self._fits(method):
            self._running.pop(next(iter(self._running))).close()

    def _fits(self, method: Method) -> bool:
        if not self._installation.cpu:
            return self._gpu_share() * (len(self._running) + 1) <= 1
        cache = float(os.environ.get("VLLM_CPU_KVCACHE_SPACE") or 1) * 2**30
        free = memory.ram_available()
        return free is None or self._weights(method) + cache + RUNTIME < free

    def _gpu_share(self) -> float:
        """The share of a GPU's memory that each server gets: what the flags say, an equal part of all where the servers
        of all methods fit beside each other, or what vLLM takes for one."""
        told = preflight.value_of(self._flags, "--gpu-memory-utilization")
        if told:
            return float(told)
        methods: tuple[Method, ...] = ("none", *self._drafters)
        smallest = min((gpu.total for gpu in memory.gpus() or ()), default=0)
        total = smallest * int(preflight.value_of(self._flags, "--tensor-parallel-size") or 1)
        part = GPU_SHARE / len(methods)
        return part if all(self._weights(method) * _ROOM < part * total for method in methods) else GPU_SHARE

    def _weights(self, method: Method) -> int:
        """Bytes of the weights that a server for `method` loads."""
        folders = [self._target, *(drafter.folder for drafter in (self._drafters.get(method),) if drafter)]
        return sum(path.stat().st_size for folder in folders for path in folder.glob("*.safetensors"))

    def _describe(self, hello: wire.Hello) -> EngineInfo:
        return EngineInfo(
            engine=ENGINE,
            model=self._model,
            drafters={method: drafter.folder.name for method, drafter in self._drafters.items()},
            max_depths={method: self._depth(method) for method in self._drafters},
            context=hello.context,
            machine=machine_of(hello),
            versions={"peagle": peagle_cli.__version__, "vllm": hello.vllm, "python": platform.python_version()},
            steerable=hello.steers,
            takes_turns=False,
            notes=(*hello.notes, *notes_on(hello), *self._notes()),
        )

    def _notes(self) -> list[str]:
        notes = []
        longest = preflight.target_context(self._target)
        for method, drafter in self._drafters.items():
            if drafter.context and longest and drafter.context < longest:
                notes.append(
                    f"The context ends at {drafter.context} tokens with the {METHOD_NAMES[method]} drafter, which was "
                    f"made for no more; the target could do {longest}."
                )
        if "eagle3" in self._drafters and not self._installation.cpu:
            notes.append(
                "Below the depth it was started with, an EAGLE-3 server on a GPU still pays for every pass: for times, "
                "start with the --depth that is to be timed."
            )
        return notes


def machine_of(hello: wire.Hello) -> Machine:
    """What a tapped server runs on."""
    return Machine(hello.device, hello.device_name, hello.dtype, hello.weights, hello.threads)


def notes_on(hello: wire.Hello) -> list[str]:
    """What the tap of a server cannot tell, and why."""
    notes = []
    if not hello.steers:
        notes.append(
            "The server schedules asynchronously: rejected drafts are unknown, and depth and pace are the server's. "
            "Without --async-scheduling all of it is there."
        )
    if hello.depth and not hello.times_drafts:
        notes.append(
            "Drafting is not timed apart from verifying here: it needs "
            f"--worker-extension-cls {wire.EXTENSION}, synchronous scheduling and vLLM's first model runner."
        )
    return notes
