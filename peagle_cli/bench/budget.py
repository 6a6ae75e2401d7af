"""Where the time of a step goes: products with weights, attention, and all the small rest that Python calls."""

import contextlib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import median
from time import perf_counter
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from peagle_cli.bench.report import Budget
from peagle_cli.engine import wire
from peagle_cli.engine.protocol import LaneSetting, Request
from peagle_cli.engine.torch.engine import TorchEngine
from peagle_cli.engine.torch.sampling import DraftRule, first_choices
from peagle_cli.engine.torch.verify import verify_greedy
from peagle_cli.trace.events import DraftBatch, Message, Sampling
from peagle_cli.trace.rounds import Setting

STEPS = 16

_PRODUCTS = {"_weight_int4pack_mm_for_cpu", "_weight_int8pack_mm", "_linear_pointwise", "linear", "mm", "addmm"}
_ATTENTION = "scaled_dot_product"  # in the name of each of torch's kernels for it, on every device


class _Operations(TorchDispatchMode):
    """While entered, adds up the seconds of operations by their kind. `vocabulary` tells the head's product apart."""

    def __init__(self, device: torch.device, vocabulary: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._device = device
        self._vocabulary = vocabulary

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run the operation, and count its time."""
        began = perf_counter()
        result = func(*args, **(kwargs or {}))
        finish(self._device)
        self.seconds[self._kind(func.overloadpacket.__name__, result)] += perf_counter() - began
        return result

    def _kind(self, name: str, result: Any) -> str:
        if _ATTENTION in name:
            return "attention"
        if name in _PRODUCTS:
            return "head" if result.shape[-1] == self._vocabulary else "matrices"
        return "rest"


class _Times:
    """Seconds of a part of many steps: as a whole, and by kinds of operations in others of the steps."""

    def __init__(self, device: torch.device, vocabulary: int) -> None:
        self._device = device
        self._vocabulary = vocabulary
        self._whole: list[float] = []
        self._kinds: list[defaultdict[str, float]] = []

    def add(self, work: Callable[[], Any], *, by_kind: bool) -> Any:
        """Do the work and time it; returns its result. Timing operations takes time, so it is one or the other."""
        operations = _Operations(self._device, self._vocabulary)
        began = perf_counter()
        with operations if by_kind else contextlib.nullcontext():
            result = work()
        finish(self._device)
        if by_kind:
            self._kinds.append(operations.seconds)
        else:
            self._whole.append(perf_counter() - began)
        return result

    @property
    def whole(self) -> float:
        """Of the part."""
        return median(self._whole) if self._whole else 0.0

    def kind(self, name: str) -> float:
        """Of its operations of that kind."""
        return median(seconds[name] for seconds in self._kinds) if self._kinds else 0.0


def budget(engine: TorchEngine, ids: Sequence[int], setting: Setting) -> Budget:
    """The budget of steps with `setting` that go on from the prompt `ids`."""
    method, depth = setting
    context = engine.new_context()
    context.restart(ids)
    logits = context.prefill()
    context.append(_chosen(logits))
    draft, verify, choose = (_Times(context.device, logits.shape[-1]) for _ in range(3))
    rule = DraftRule(0.0, None)
    for i in range(2 * STEPS):
        by_kind = i % 2 == 1
        drafts: list[int] = []
        if depth:
            drafts = draft.add(partial(context.draft, method, depth, rule), by_kind=by_kind).ids
        logits = verify.add(partial(context.verify, drafts), by_kind=by_kind)
        choices = choose.add(partial(_chosen, logits), by_kind=False)
        verdict = verify_greedy(drafts, choices)
        context.append([*drafts[: verdict.accepted], verdict.bonus])
    matrices, attention, head = (verify.kind(name) for name in ("matrices", "attention", "head"))
    return Budget(
        method=method,
        depth=depth,
        context=len(ids),
        matrices=matrices,
        attention=attention,
        head=head,
        python=max(0.0, verify.whole - matrices - attention - head),
        draft=draft.whole,
        draft_matrices=draft.kind("matrices") + draft.kind("head"),
        sampling=choose.whole,
        event=_event(engine, setting),
    )


def _chosen(logits: torch.Tensor) -> list[int]:
    choices: list[int] = first_choices(logits).tolist()
    return choices


def finish(device: torch.device) -> None:
    """Wait until a GPU has done what it was told to."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _event(engine: TorchEngine, setting: Setting) -> float:
    """Seconds of a step that are neither the drafter's nor the target's."""
    question = (Message("user", "Tell me something about ships."),)
    request = Request(question, (LaneSetting("budget", *setting),), Sampling(), 2 * STEPS)
    seconds = []
    began = perf_counter()
    for event in engine.run(request):
        if isinstance(event, DraftBatch):
            wire.encode(wire.Happened(1, event))
            seconds.append(perf_counter() - began - event.draft_s - event.verify_s)
        began = perf_counter()
    return median(seconds)
