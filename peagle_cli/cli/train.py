"""`peagle train`: write data with the target, train a drafter on it, try it."""

import contextlib
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import typer

from peagle_cli.cli.evaluation_report import evaluation_sections
from peagle_cli.cli.loading import loading_shown
from peagle_cli.cli.options import PROMPTS_HELP, Device, Dtype, Model
from peagle_cli.cli.sections import as_markdown, as_text
from peagle_cli.errors import BadInputError
from peagle_cli.models.progress import Progress
from peagle_cli.models.served import check_embedded
from peagle_cli.text import printable, printable_json
from peagle_cli.train.settings import DEPTHS, LAYERS, End, Settings, TrainableMethod

train = typer.Typer(help="Make drafters: data, training, evaluation.", no_args_is_help=True)

_DEFAULTS = Settings(method="peagle")
_END = _DEFAULTS.end
_MOST = 1_000_000
"""Epochs or minutes: infinity is no end."""
_TRAIN_ELSEWHERE = "Its drafters are trained with speculators; docs/training.md says how the two go together."


def _by_method(values: Mapping[TrainableMethod, int]) -> str:
    return ", ".join(f"{method} {value}" for method, value in values.items())


@train.command()
def data(
    out: Annotated[Path, typer.Option(help="File to write, or to go on with.")],
    model: Model = None,
    prompts: Annotated[Path | None, typer.Option(help=PROMPTS_HELP, show_default=False)] = None,
    tokens: Annotated[int, typer.Option(min=1, help="Answer tokens to have in the end.")] = 1_000_000,
    answer_tokens: Annotated[int, typer.Option(min=16, max=1024, help="Longest answer in tokens.")] = 320,
) -> None:
    """Write training data: the target answers the given prompts, and then prompts of its own.

    Needs no data set. Where vLLM is installed it writes many answers at a time. The same command goes on where it
    was stopped.
    """
    from peagle_cli.cli.writing_shown import writing_shown
    from peagle_cli.models.store import target_folder
    from peagle_cli.models.tokenizer import Tokenizer
    from peagle_cli.prompts import first_turns
    from peagle_cli.train.disk import held, make_folder
    from peagle_cli.train.self_distillation import resume, write_data
    from peagle_cli.train.writers import open_writer

    given = first_turns(prompts) if prompts else []
    make_folder(out.parent)
    with held(out):
        resume(out)  # a file that cannot be gone on with is refused before anything is loaded
        with loading_shown() as on_progress:
            folder = target_folder(model, on_progress)
            on_progress(Progress("Opening the writer"))
            writer = open_writer(folder)
        with contextlib.closing(writer), writing_shown(writer.name, tokens) as show:
            amount = write_data(
                out, Tokenizer.load(folder), writer, given, tokens, answer_tokens, lambda now: show(now.answer_tokens)
            )
    typer.echo(f"{amount.conversations} conversations with {amount.answer_tokens} answer tokens: {printable(str(out))}")


@train.command()
def run(
    method: Annotated[TrainableMethod, typer.Option(help="What kind of drafter.")],
    data: Annotated[Path, typer.Option(help="Conversations that `peagle train data` wrote.")],
    out: Annotated[Path, typer.Option(help="Folder of the run; an interrupted one goes on.")],
    model: Model = None,
    start: Annotated[
        Path | None, typer.Option(help="Drafter to begin with, such as an EAGLE-3 one for P-EAGLE.", show_default=False)
    ] = None,
    validation: Annotated[
        Path | None, typer.Option(help="Conversations to validate on. Default: the last of the data.")
    ] = None,
    states: Annotated[
        Path | None, typer.Option(help="Where the target's states are kept. Default: in the run's folder.")
    ] = None,
    epochs: Annotated[float, typer.Option(min=0.001, max=_MOST, help="Passes over the data.")] = _END.epochs,
    minutes: Annotated[
        float | None, typer.Option(min=0.01, max=_MOST, help="Train so long instead.", show_default=False)
    ] = None,
    decay: Annotated[
        float, typer.Option(min=0, max=1, help="Share of it in which learning rates fall to 0.")
    ] = _END.decay,
    layers: Annotated[
        int | None,
        typer.Option(min=1, max=16, help=f"Layers. Default: {_by_method(LAYERS)}.", show_default=False),
    ] = None,
    intermediate: Annotated[
        int, typer.Option(min=16, max=131072, help="Width of the feed-forward halves.")
    ] = _DEFAULTS.intermediate,
    draft_vocab: Annotated[
        int, typer.Option(min=16, help="Most frequent tokens that can be drafted.")
    ] = _DEFAULTS.draft_vocab,
    depth: Annotated[
        int | None,
        typer.Option(
            min=1, max=32, help=f"Tokens per training draft. Default: {_by_method(DEPTHS)}.", show_default=False
        ),
    ] = None,
    keep: Annotated[
        float, typer.Option(min=0, max=1, help="P-EAGLE: share of drafts that go one mask slot deeper.")
    ] = _DEFAULTS.keep,
    matrix_rate: Annotated[
        float, typer.Option(min=0, max=1, help="Learning rate of matrices (Muon).")
    ] = _DEFAULTS.matrix_rate,
    head_rate: Annotated[
        float, typer.Option(min=0, max=1, help="Learning rate of the head (AdamW).")
    ] = _DEFAULTS.head_rate,
    vector_rate: Annotated[
        float, typer.Option(min=0, max=1, help="Learning rate of vectors (AdamW).")
    ] = _DEFAULTS.vector_rate,
    batch_tokens: Annotated[int, typer.Option(min=64, max=2**20, help="Tokens per step.")] = _DEFAULTS.batch_tokens,
    max_length: Annotated[
        int, typer.Option(min=32, max=131072, help="Conversations are cut there.")
    ] = _DEFAULTS.max_length,
    segment: Annotated[
        int, typer.Option(min=16, help="P-EAGLE: partition longer sequences by so many.")
    ] = _DEFAULTS.segment,
    seed: Annotated[
        int, typer.Option(min=0, max=2**32 - 1, help="Of the weights, the order and the drops.")
    ] = _DEFAULTS.seed,
    device: Device = None,
) -> None:
    """Train a drafter. It is exported as vLLM loads it, to the run's folder `drafter`.

    Run the same command again after an interruption, or with more epochs: it goes on from the last checkpoint, or from
    before learning rates fell.
    """
    from peagle_cli.cli.training_view import shown
    from peagle_cli.engine.torch import hardware
    from peagle_cli.models.store import target_folder
    from peagle_cli.train.disk import held, make_folder
    from peagle_cli.train.log import read_log
    from peagle_cli.train.trainer import open_run

    settings = Settings(
        method=method,
        layers=layers,
        intermediate=intermediate,
        draft_vocab=draft_vocab,
        depth=depth,
        keep=keep,
        end=End(epochs=epochs, minutes=minutes, decay=decay),
        matrix_rate=matrix_rate,
        head_rate=head_rate,
        vector_rate=vector_rate,
        batch_tokens=batch_tokens,
        max_length=max_length,
        segment=segment,
        seed=seed,
    )
    check_embedded(model, _TRAIN_ELSEWHERE)
    with loading_shown() as on_progress:
        folder = target_folder(model, on_progress)
    make_folder(out)
    with held(out), shown(read_log(out / "log.jsonl")) as listener:
        chosen = hardware.choose_device(device)
        open_run(out, settings, folder, data, validation, states or out / "states", start, chosen, listener).go()
    typer.echo(printable(f"The drafter is in {out / 'drafter'}."))


@train.command("eval")
def evaluate(
    drafter: Annotated[list[Path], typer.Option(help="A drafter's folder; again for another method's.")],
    prompts: Annotated[list[Path], typer.Option(help=PROMPTS_HELP + " Again for another set.")],
    model: Model = None,
    depth: Annotated[list[int] | None, typer.Option(min=1, help="Depth; again for more. Default: 3, 5, 7.")] = None,
    max_tokens: Annotated[int, typer.Option(min=1, help="Tokens a reply may have.")] = 256,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Use so many prompts of a set at most.", show_default=False)
    ] = None,
    output: Annotated[
        Literal["table", "json", "markdown"], typer.Option(help="Tables to read or for a page, or JSON.")
    ] = "table",
    dtype: Dtype = None,
    device: Device = None,
) -> None:
    """Measure drafters' greedy acceptance on prompts, per depth, with vLLM's definitions."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from peagle_cli.engine.protocol import EngineSpec
    from peagle_cli.engine.torch.engine import TorchEngine
    from peagle_cli.prompts import first_turns
    from peagle_cli.train import evaluate as evaluation

    sets = {path.stem: first_turns(path)[:limit] for path in prompts}
    for folder in drafter:
        if not folder.is_dir():
            raise BadInputError(f"{folder} is not a folder.", "Name a drafter's folder, such as RUN/drafter.")
    check_embedded(model, _TRAIN_ELSEWHERE)
    with loading_shown() as on_progress:
        spec = EngineSpec(model=model, drafters=tuple(map(str, drafter)), device=device, dtype=dtype)
        engine = TorchEngine.open(spec, on_progress)
    depths = list(dict.fromkeys(depth or (3, 5, 7)))
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        total = sum(map(len, sets.values())) * len(engine.info.drafters)
        task = bar.add_task("Replies", total=total)
        found = evaluation.evaluate(engine, sets, depths, max_tokens, partial(bar.advance, task))
    if output == "json":
        typer.echo(printable_json(msgspec.json.encode(found)))  # on one line: it has every token
    else:
        form = as_markdown if output == "markdown" else as_text
        typer.echo(printable("\n\n".join(form(section) for section in evaluation_sections(found))))


@train.command()
def card(
    run: Annotated[Path, typer.Option(help="Folder of the run that trained the drafter.")],
    evaluation: Annotated[
        list[Path] | None,
        typer.Option(help="What `eval --output json` wrote; again for another engine's.", show_default=False),
    ] = None,
    about: Annotated[
        Path | None, typer.Option(help="Markdown on the data, its sources and licences.", show_default=False)
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The drafter's folder. Default: the run's `drafter`.", show_default=False)
    ] = None,
) -> None:
    """Write a drafter's README from its run: recipe, time, machine, curves, and how it fares on prompts."""
    from peagle_cli.cli.train_card import write_card
    from peagle_cli.train.evaluate import read_evaluations

    try:
        words = about.read_text(encoding="utf-8") if about else ""
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError(f"{about} cannot be read: {error}.", "Name a file of Markdown.") from error
    found = [one for path in evaluation or [] for one in read_evaluations(path)]
    folder = out or run / "drafter"
    write_card(folder, run, found, words)
    typer.echo(printable(f"The card is {folder / 'README.md'}."))
