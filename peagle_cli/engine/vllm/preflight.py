"""What would make vLLM fail, or draft badly, told in a sentence before a server is started.

Knows more kinds of drafters and targets than the embedded engine, and therefore checks less: sizes that must agree.
"""

import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from peagle_cli.errors import BadInputError
from peagle_cli.models.config import read_json
from peagle_cli.models.headers import read_headers
from peagle_cli.trace.events import Method

HOST = "127.0.0.1"
"""Where servers of our own listen."""

_HYBRID = ("linear_attention", "mamba", "mamba2", "gated_delta_net")
"""Kinds of layers that keep another state than keys and values."""

_OURS = ("--speculative-config", "--speculative_config", "-sc", "--scheduler-cls", "--worker-extension-cls", "--model")


class Drafter(msgspec.Struct, frozen=True):
    """A drafter as vLLM's `--speculative-config` wants it. `context` is the longest it was made for, where it says."""

    method: Method
    folder: Path
    context: int | None


def inspect_drafter(folder: Path, target_folder: Path) -> Drafter:
    """The drafter in `folder`, found to fit the target. Raises `BadInputError` when it is none or does not fit."""
    raw, target = read_json(folder / "config.json"), _text(read_json(target_folder / "config.json"))
    method = _method(raw, folder)
    shape = {**raw, **(raw.get("transformer_layer_config") or {})}  # speculators keep the layers' shape apart
    _check_hybrid(target, shape)
    _check_vocabulary(folder, shape, target)
    _check_hidden(folder, shape, target)
    context = shape.get("max_position_embeddings")
    return Drafter(method, folder, context if isinstance(context, int) else None)


def check_flags(flags: Sequence[str]) -> None:
    """Raise `BadInputError` for flags of vLLM that peagle gives itself, and for a port that cannot be had."""
    for flag in flags:
        name = flag.partition("=")[0]
        if name in _OURS:
            raise BadInputError(f"peagle gives vLLM {name} itself.", "Use --model, --drafter and --depth.")
        if name in ("--api-key", "--hf-token"):
            raise BadInputError(
                f"{name} would show the secret to all who list processes.", "Set VLLM_API_KEY or HF_TOKEN instead."
            )

    port = value_of(flags, "--port")
    if port is not None and not is_free(port):
        raise BadInputError(f"Port {port} is in use, or none at all.", "Name another, or leave --port out.")


def is_free(port: str) -> bool:
    """Whether a server could listen on this port of the loopback interface."""
    if not port.isdecimal():
        return False
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do, for connections that just ended
        try:
            probe.bind((HOST, int(port)))
        except (OSError, OverflowError):
            return False
    return True


def value_of(flags: Sequence[str], name: str) -> str | None:
    """What a flag is given last, which is what counts, as `--flag value` or `--flag=value`; None where it is not."""
    value = None
    for i, flag in enumerate(flags):
        if flag == name and i + 1 < len(flags):
            value = flags[i + 1]
        elif flag.startswith(f"{name}="):
            value = flag.partition("=")[2]
    return value


def _method(raw: dict[str, Any], folder: Path) -> Method:
    kind = str(raw.get("speculators_model_type", ""))
    names = [str(name) for name in raw.get("architectures") or []]
    if raw.get("ptd_token_id") is not None or kind in ("peagle", "p-eagle"):
        return "peagle"
    if kind == "eagle3" or any("eagle3" in name.lower() for name in names):
        return "eagle3"
    found = " or ".join(names) or "checkpoint of unnamed architecture"
    raise BadInputError(
        f"{folder} holds a {found}, not an EAGLE-3 or P-EAGLE drafter.", "Name one with --drafter, or none."
    )


def _text(raw: dict[str, Any]) -> dict[str, Any]:
    """The part of a target's configuration that describes its language model."""
    inner = raw.get("text_config")
    return {**raw, **inner} if isinstance(inner, dict) else raw


def _check_hybrid(target: dict[str, Any], drafter: dict[str, Any]) -> None:
    kinds = set(map(str, target.get("layer_types") or []))
    if kinds & set(_HYBRID) and (drafter.get("num_hidden_layers") or 1) > 1:
        raise BadInputError(
            "vLLM cannot keep the cache of a drafter of several layers beside a target with "
            f"{' and '.join(sorted(kinds & set(_HYBRID)))} layers (vLLM issue 35062).",
            "Use a drafter of one layer.",
        )


def _check_vocabulary(folder: Path, drafter: dict[str, Any], target: dict[str, Any]) -> None:
    own, theirs = drafter.get("vocab_size"), target.get("vocab_size")
    if isinstance(own, int) and isinstance(theirs, int) and own != theirs:
        raise BadInputError(
            f"The drafter in {folder} is for a vocabulary of {own:,} tokens, and the target's has {theirs:,}.",
            "It was made for another model.",
        )


def _check_hidden(folder: Path, drafter: dict[str, Any], target: dict[str, Any]) -> None:
    """The drafter reads three hidden states of the target, or as many as it names."""
    tensors, theirs = read_headers(folder), target.get("hidden_size")
    fc = tensors["fc.weight"].shape if "fc.weight" in tensors else ()
    eagle = drafter.get("eagle_config") or {}
    layers = drafter.get("eagle_aux_hidden_state_layer_ids") or (
        eagle.get("eagle_aux_hidden_state_layer_ids") if isinstance(eagle, dict) else None
    )
    states = len(layers) if layers else 3
    if len(fc) == 2 and isinstance(theirs, int) and fc[1] != states * theirs:
        raise BadInputError(
            f"The drafter in {folder} reads {fc[1]} channels of hidden states, and {states} states of the target have "
            f"{states * theirs}.",
            "It was made for another model.",
        )


def target_context(folder: Path) -> int | None:
    """The longest context of a target, where its configuration says."""
    length = _text(read_json(folder / "config.json")).get("max_position_embeddings")
    return length if isinstance(length, int) else None
