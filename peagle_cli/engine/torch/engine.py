"""The embedded engine behind the `Engine` protocol: opens models, answers requests, obeys commands between steps."""

import logging
import platform
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path

import torch

import peagle_cli
from peagle_cli.engine.protocol import Command, EngineInfo, EngineSpec, LaneSetting, Progress, Request
from peagle_cli.engine.torch import hardware
from peagle_cli.engine.torch.context import Context
from peagle_cli.engine.torch.controls import Controls
from peagle_cli.engine.torch.decode import Lane
from peagle_cli.engine.torch.drafter import DRAFTERS, MAX_DEPTH, Drafter
from peagle_cli.engine.torch.packed import PackedMatrices
from peagle_cli.engine.torch.target import Target
from peagle_cli.engine.torch.weights import Weights
from peagle_cli.engine.validate import check_command, check_request
from peagle_cli.errors import BadInputError
from peagle_cli.models import store
from peagle_cli.models.checkpoint import DrafterConfig, check_drafter, check_target
from peagle_cli.models.config import LlamaConfig
from peagle_cli.models.progress import OnProgress, unheard
from peagle_cli.models.tokenizer import Tokenizer
from peagle_cli.trace.events import METHOD_NAMES, Event, Failed, Finished, Machine, Method, Started

log = logging.getLogger(__name__)

ENGINE = "torch"

MAX_CONTEXT = 8192
"""Longest context in tokens, where the model itself allows more: caches are reserved for all of it."""


class TorchEngine:
    """A target and its drafters in this process. Lanes keep their caches until a request has no lane of that name."""

    def __init__(
        self,
        model: str,
        target: Target,
        tokenizer: Tokenizer,
        drafters: dict[Method, Drafter],
        drafter_names: dict[Method, str],
        aux_layers: Sequence[int],
    ) -> None:
        self._info = _info(model, target, drafters, drafter_names)
        self._target = target
        self.tokenizer = tokenizer
        self._drafters = drafters
        self._aux_layers = aux_layers
        self._contexts: dict[str, Context] = {}
        self._controls = Controls(self._info.max_depths)

    @classmethod
    def open(cls, spec: EngineSpec, on_progress: OnProgress = unheard) -> "TorchEngine":
        """Fetch what is missing, check what is there, and load it.

        Raises `BadInputError` for a model, drafter or device that cannot be used, `PeagleError` when fetching fails.
        """
        device = hardware.choose_device(spec.device)
        torch.set_num_threads(hardware.usable_cpus())
        folder = store.target_folder(spec.model, on_progress)
        checkpoints = _checkpoints(store.drafter_folders(spec.drafters, spec.model, on_progress), folder)
        preset = store.find_preset(spec.model)
        model = preset.title if preset else str(spec.model)
        on_progress(Progress(f"Loading {model}"))
        packed = _packed(spec, device, model)
        dtype = hardware.choose_dtype("int4" if packed else spec.dtype, device)
        if packed and not packed.are_kept:
            on_progress(Progress(f"Packing the weights of {model}"))
        target = Target.load(folder, device, dtype, MAX_CONTEXT, packed)
        if packed:
            packed.keep()
        aux_layers = sorted({layer for _, config in checkpoints.values() for layer in config.aux_layers})
        drafters: dict[Method, Drafter] = {}
        for method, (drafter_folder, config) in checkpoints.items():
            on_progress(Progress(f"Loading the {METHOD_NAMES[method]} drafter"))
            weights = Weights(drafter_folder, device, dtype)
            drafters[method] = DRAFTERS[method](config, weights, target, aux_layers)
        names = {method: drafter_folder.name for method, (drafter_folder, _) in checkpoints.items()}
        return cls(model, target, Tokenizer.load(folder), drafters, names, aux_layers)

    @property
    def info(self) -> EngineInfo:
        """What was opened."""
        return self._info

    def run(self, request: Request) -> Generator[Event]:
        """Answer `request` as `Engine.run` says; what cannot be served is refused by the call itself."""
        check_request(request, self._info)
        prompt = self.tokenizer.chat_ids(request.messages)
        if len(prompt) >= self._info.context:
            raise BadInputError(
                f"The conversation has {len(prompt)} tokens, and the context of {self._info.model} ends at "
                f"{self._info.context}.",
                "Shorten the prompt or start a new conversation.",
            )
        self._controls = Controls(self._info.max_depths)  # commands to an earlier request are void
        return self._answer(request, prompt, self._controls)

    def control(self, command: Command) -> None:
        """Obey `command` between two steps of the running request; raises `BadInputError` when no lane could."""
        check_command(command, self._info)
        self._controls.put(command)

    def close(self) -> None:
        """Give the models back; the engine cannot be used afterwards."""
        self._contexts.clear()
        self._drafters.clear()
        del self._target

    def _answer(self, request: Request, prompt: Sequence[int], controls: Controls) -> Generator[Event]:
        self._contexts = {setting.name: self._context(setting.name) for setting in request.lanes}
        lanes = [self._lane(setting, request, prompt) for setting in request.lanes]
        for lane in lanes:
            yield self._started(lane, request, prompt)
        while lanes:
            yield from controls.obey(lanes)
            if controls.stopped:
                yield from (Finished(lane.name, "cancelled") for lane in lanes)
                return
            # One step at a time, for the lane whose own clock is behind: each is timed alone, and none runs ahead.
            lane = min(lanes, key=lambda lane: lane.clock_s)
            try:
                yield lane.step()
            except Exception as error:
                log.exception("A step of lane %s failed", lane.name)
                del self._contexts[lane.name]  # its caches may be half written
                lanes.remove(lane)
                yield Failed(lane.name, f"The engine failed: {error}.", "Ask again; the log has the details.")
                continue
            if lane.finished:
                lanes.remove(lane)
                yield Finished(lane.name, lane.finished)

    def new_context(self) -> Context:
        """Caches for another conversation, for whoever decodes by other means than requests."""
        return Context(self._target, self._drafters, self._aux_layers)

    def _context(self, lane: str) -> Context:
        return self._contexts.get(lane) or self.new_context()

    def _lane(self, setting: LaneSetting, request: Request, prompt: Sequence[int]) -> Lane:
        return Lane(
            setting.name,
            self._contexts[setting.name],
            self.tokenizer,
            prompt,
            method=setting.method,
            depth=setting.depth,
            sampling=request.sampling,
            max_tokens=request.max_tokens,
            candidates=request.candidates,
        )

    def _started(self, lane: Lane, request: Request, prompt: Sequence[int]) -> Started:
        return self._info.started(
            request, lane.name, method=lane.method, depth=lane.depth, prompt_ids=prompt, reused=lane.reused
        )


def _packed(spec: EngineSpec, device: torch.device, model: str) -> PackedMatrices | None:
    """The target's matrices at 4 bits, where they are to be had and not unwanted; raises `BadInputError` where they are
    wanted and not to be had."""
    file = store.gguf_file(spec.model)
    if not (file and file.is_file()):
        problem = f"The weights of {model} are not at 4 bits."
    elif not hardware.has_int4(device):
        problem = f"torch has no fast kernel for 4-bit weights on {hardware.device_name(device)}."
    else:
        return PackedMatrices(file) if spec.dtype in (None, "int4") else None
    if spec.dtype == "int4":
        raise BadInputError(problem, "Leave --dtype out: the fastest precision there is will be used.")
    return None


def _checkpoints(folders: Sequence[Path], target_folder: Path) -> dict[Method, tuple[Path, DrafterConfig]]:
    """The drafters' checkpoints by method, all found whole and to fit the target."""
    target = LlamaConfig.read(target_folder)
    check_target(target_folder, target)
    checkpoints: dict[Method, tuple[Path, DrafterConfig]] = {}
    for folder in folders:
        config = DrafterConfig.read(folder, target)
        check_drafter(folder, config, target)
        if config.method in checkpoints:
            raise BadInputError(
                f"{checkpoints[config.method][0]} and {folder} are both {METHOD_NAMES[config.method]} drafters.",
                "Name one drafter per method.",
            )
        checkpoints[config.method] = folder, config
    return checkpoints


def _info(model: str, target: Target, drafters: Mapping[Method, Drafter], names: dict[Method, str]) -> EngineInfo:
    return EngineInfo(
        engine=ENGINE,
        model=model,
        drafters=names,
        max_depths=dict.fromkeys(drafters, MAX_DEPTH),
        context=target.context,
        machine=Machine(
            device=str(target.device),
            name=hardware.device_name(target.device),
            dtype=hardware.dtype_name(target.dtype),
            weights=target.weights,
            threads=torch.get_num_threads(),
        ),
        versions={
            "peagle": peagle_cli.__version__,
            "torch": str(torch.__version__),  # a subclass of str that is not plain JSON
            "python": platform.python_version(),
        },
        footprints={"none": target.footprint, **{method: drafter.footprint for method, drafter in drafters.items()}},
    )
