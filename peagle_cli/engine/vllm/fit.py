"""Whether this machine can hold a model that is known by name, told before anything is fetched or started."""

from collections.abc import Sequence

import msgspec

from peagle_cli.engine import memory
from peagle_cli.engine.memory import Gpu
from peagle_cli.engine.vllm.preflight import value_of
from peagle_cli.errors import BadInputError
from peagle_cli.models.served import CONTEXT, ServedModel

GPU_SHARE = 0.9
"""Of a GPU's memory: what servers are given unless --gpu-memory-utilization says otherwise."""

RUNTIME = 2_000_000_000
"""Bytes that a server takes beside weights and cache: its activations, graphs and libraries. A rough number."""


class Need(msgspec.Struct, frozen=True):
    """What a model needs, in bytes; `drafter` is that of its largest published one, `cache` for `context` tokens."""

    weights: int
    drafter: int
    cache: int
    runtime: int
    context: int

    @property
    def total(self) -> int:
        """All of it."""
        return self.weights + self.drafter + self.cache + self.runtime

    @property
    def text(self) -> str:
        """For people: the sum, and what is in it."""
        return (
            f"{_gb(self.total)} (weights {_gb(self.weights)}, drafter {_gb(self.drafter)}, cache for "
            f"{self.context:,} tokens {_gb(self.cache)}, vLLM itself about {_gb(self.runtime)})"
        )


def need_of(model: ServedModel, flags: Sequence[str] = ()) -> Need:
    """What `model` needs with these flags of vLLM."""
    asked = value_of(flags, "--max-model-len") or ""
    context = int(asked) if asked.isdecimal() else CONTEXT
    drafter = max((drafter.weights for drafter in model.drafters), default=0)
    return Need(model.weights, drafter, model.cache(context), RUNTIME, context)


def flags_of(model: ServedModel, *, cpu: bool) -> tuple[str, ...]:
    """The flags that a server for `model` is started with; those of a user come behind, and win."""
    return ("--max-model-len", str(CONTEXT), *(() if cpu else model.gpu_flags))


def why_not(model: ServedModel, flags: Sequence[str], *, gpus: Sequence[Gpu] | None, ram: int | None, cpu: bool) -> str:
    """In half a sentence, why a machine with these `gpus` (None: unknown), or this much `ram` where vLLM is a build for
    processors, cannot hold `model`; "" when it can, as far as is known."""
    need = need_of(model, flags)
    if cpu:
        short = ram is not None and need.total > ram
        return f"it needs {need.text}, and {_gb(ram or 0)} of memory are free" if short else ""
    if gpus is None:
        return ""
    if not gpus:
        return "there is no GPU here"
    used = gpus[: _gpus_asked(flags)]
    asked = value_of(flags, "--gpu-memory-utilization") or ""
    share = float(asked) if asked.replace(".", "", 1).isdecimal() else GPU_SHARE
    usable = share * sum(gpu.total for gpu in used)
    if need.total <= usable:
        return ""
    names = " and ".join(gpu.name for gpu in used)
    return f"it needs {need.text}, and vLLM may take {_gb(usable)} of {names}"


def check_fits(model: ServedModel, flags: Sequence[str], *, cpu: bool) -> None:
    """Raise `BadInputError` when this machine cannot hold `model`."""
    reason = why_not(model, flags, gpus=memory.gpus(), ram=memory.ram_available(), cpu=cpu)
    if reason:
        more = "" if cpu else ", or more GPUs: -- --tensor-parallel-size 2"
        raise BadInputError(f"{model.title} does not fit here: {reason}.", f"Choose a smaller model{more}.")


def _gpus_asked(flags: Sequence[str]) -> int:
    """GPUs that the weights are spread over."""
    number = 1
    for names in (("--tensor-parallel-size", "-tp"), ("--pipeline-parallel-size", "-pp")):
        given = next((value for name in names if (value := value_of(flags, name))), "")
        number *= int(given) if given.isdecimal() and int(given) else 1
    return number


def _gb(size: float) -> str:
    return f"{size / 1e9:.1f} GB"
