"""What a tapped server says of itself: read from vLLM's configuration, inside vLLM."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from vllm import __version__ as vllm_version
from vllm.platforms import current_platform

import peagle_cli
from peagle_cli.engine.vllm import wire


def hello(config: Any, *, steers: bool) -> wire.Hello:
    """The greeting of a server with this `VllmConfig`; `steers` as in `wire.Hello`."""
    model, speculation = config.model_config, config.speculative_config
    drafter = speculation.draft_model_config if speculation else None
    extended = config.parallel_config.worker_extension_cls == wire.EXTENSION
    dtype = _name(model.dtype)
    return wire.Hello(
        protocol=wire.PROTOCOL,
        peagle=peagle_cli.__version__,
        vllm=vllm_version,
        model=str(model.model),
        drafter=str(speculation.model) if speculation and speculation.model else None,
        method=speculation.method if speculation else None,
        parallel=bool(speculation and speculation.parallel_drafting),
        depth=config.num_speculative_tokens,
        context=model.max_model_len,
        device=current_platform.device_type,
        device_name=_device_name(),
        dtype=dtype,
        weights=_weights(model, dtype),
        threads=torch.get_num_threads(),
        ranks=config.parallel_config.data_parallel_size,
        steers=steers,
        times_drafts=extended and steers and speculation is not None and not config.use_v2_model_runner,
        samples=extended or not current_platform.is_cpu(),
        notes=tuple(_notes(config, drafter, dtype)),
    )


def _notes(config: Any, drafter: Any, dtype: str) -> Iterator[str]:
    """What a user should know of this server, in sentences."""
    if not vllm_version.startswith(wire.MADE_FOR):
        yield f"peagle was made for vLLM {wire.MADE_FOR}, and this is {vllm_version}: figures may be wrong or missing."
    if drafter is None:
        return
    model, speculation = config.model_config, config.speculative_config
    if speculation.method == "eagle3" and not _aux_layers(drafter.hf_config):
        yield (
            "The drafter's config.json does not name the target's layers that it reads: vLLM guesses them, and drafts "
            "are worth something only if it guesses right."
        )
    own = getattr(drafter.hf_text_config, "max_position_embeddings", None)
    if own and own < model.max_model_len:
        yield (
            f"The drafter was made for {own} tokens of context, and the server allows {model.max_model_len}: behind "
            "that, drafts are worthless or missing."
        )
    if config.parallel_config.tensor_parallel_size > 1:
        yield (
            "Under tensor parallelism, ranks that disagree on sharing embeddings draft badly (vLLM issue 50158): hold "
            "the acceptance length against that of one GPU."
        )
    weights, own_weights = _weights(model, dtype), _weights(drafter, _name(drafter.dtype))
    if weights != own_weights:
        yield f"The target's weights are {weights}, the drafter's {own_weights}."


def _aux_layers(config: Any) -> Any:
    eagle = getattr(config, "eagle_config", None)
    inner = eagle.get("eagle_aux_hidden_state_layer_ids") if isinstance(eagle, dict) else None
    return getattr(config, "eagle_aux_hidden_state_layer_ids", None) or inner


def _weights(model: Any, dtype: str) -> str:
    return str(model.quantization) if model.quantization else dtype


def _name(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


def _device_name() -> str:
    """The processor's name."""
    info = Path("/proc/cpuinfo")
    if not current_platform.is_cpu():
        return str(current_platform.get_device_name())
    lines = info.read_text().splitlines() if info.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "CPU")
