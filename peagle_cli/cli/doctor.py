"""`peagle doctor`: what will run on this machine, and why."""

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
import typer

from peagle_cli.cli.options import Device, Drafters, Dtype, Model
from peagle_cli.engine.protocol import EngineSpec
from peagle_cli.errors import EXIT_RUNTIME, BadInputError
from peagle_cli.text import json_document, printable
from peagle_cli.trace.events import METHOD_NAMES
from peagle_cli.wording import counted

if TYPE_CHECKING:  # imports torch
    from peagle_cli.engine.diagnosis import Diagnosis, DrafterFinding, ModelFinding
    from peagle_cli.engine.vllm.outlook import Outlook


def doctor(
    model: Model = None,
    drafter: Drafters = None,
    dtype: Dtype = None,
    device: Device = None,
    output: Annotated[Literal["text", "json"], typer.Option(help="For people, or one JSON object.")] = "text",
) -> None:
    """Say what will run on this machine, and why.

    It fetches and loads nothing. The options are those of `peagle chat`. The exit code is 1 when something keeps the
    engine from running.
    """
    from peagle_cli.engine.diagnosis import diagnose
    from peagle_cli.engine.vllm.outlook import look
    from peagle_cli.models.served import find_served

    if served := find_served(model):
        raise BadInputError(
            f"{served.title} is for vLLM, and the options of this command are the embedded engine's.",
            "Leave --model out: each model for vLLM is listed.",
        )
    outlook = look()
    diagnosis = diagnose(EngineSpec(model=model, drafters=tuple(drafter or ()), device=device, dtype=dtype))
    if output == "json":
        typer.echo(json_document({**msgspec.structs.asdict(diagnosis), "vllm": outlook}), nl=False)
    else:
        for subject, text in itertools.chain(_lines(diagnosis), _served(outlook)):
            typer.echo(f"{subject:<11}{printable(text)}".rstrip())
    if diagnosis.problems:
        raise typer.Exit(EXIT_RUNTIME)


def _lines(diagnosis: "Diagnosis") -> Iterator[tuple[str, str]]:
    """What to print: a subject (empty when it is that of the line before), and what there is to say about it."""
    processor, plan = diagnosis.processor, diagnosis.plan
    yield "peagle", f"{diagnosis.peagle}, Python {diagnosis.python}, torch {diagnosis.torch}"
    yield "processor", f"{processor.name}, {processor.usable_cpus} of {processor.cpus} CPUs usable"
    yield "", " ".join(processor.features) or "no feature that helps"
    yield "GPU", ", ".join(diagnosis.gpus) or "none that torch finds"
    yield "cache", f"{diagnosis.cache}, {diagnosis.cache_free / 1e9:.1f} GB free"
    yield "model", _model(diagnosis.model)
    for i, finding in enumerate(diagnosis.drafters):
        yield "drafters" if i == 0 else "", _drafter(finding)
    if not diagnosis.drafters:
        yield "drafters", "none known for this model: name one with --drafter"
    yield "", ""
    if diagnosis.problems:
        yield "will run", "nothing, until what is marked ✗ is mended"
        return
    methods = [METHOD_NAMES[finding.method] for finding in diagnosis.drafters if finding.method]
    yield "will run", f"{diagnosis.model.name}, decoding {' or '.join([METHOD_NAMES['none'], *methods])}"
    yield "", f"on {plan.device} ({plan.why_device})"
    yield "", f"in {plan.dtype} ({plan.why_dtype})"
    yield "", f"with {counted(plan.threads, 'thread')} ({plan.why_threads})"


def _served(outlook: "Outlook") -> Iterator[tuple[str, str]]:
    """As `_lines`, of vLLM."""
    yield "", ""
    yield "vLLM", f"{outlook.version}, run by {outlook.python}" if outlook.version else str(outlook.problem)
    if outlook.gpus:
        for i, gpu in enumerate(outlook.gpus):
            yield "" if i else "its GPU", f"{gpu.name}, {gpu.total / 1e9:.1f} GB"
    else:
        yield "its GPU", "none" if outlook.gpus is not None else "unknown: nvidia-smi is not here"
    if outlook.ram_available is not None:
        yield "its memory", f"{outlook.ram_available / 1e9:.1f} GB free"
    for i, finding in enumerate(outlook.models):
        yield "" if i else "in vLLM", f"{'✓' if finding.runs else '✗'} {finding.name}: {finding.why}"


def _model(model: "ModelFinding") -> str:
    if model.problem:
        return f"✗ {model.problem}"
    if model.folder:
        return f"✓ {model.name}, in {model.folder}"
    size = f" ({model.download / 1e6:.0f} MB)" if model.download else ""
    return f"{model.name}, still to be fetched{size}"


def _drafter(drafter: "DrafterFinding") -> str:
    if drafter.problem:
        return f"✗ {drafter.problem}"
    if drafter.checked and drafter.method:
        return f"✓ {METHOD_NAMES[drafter.method]}, in {drafter.name}"
    how = f"{METHOD_NAMES[drafter.method]}, " if drafter.method else ""
    return f"{how}{drafter.name}, to be checked when it and the model are here"
