"""A drafter's card: what it was made of and what it can do, written from a run's own records."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from peagle_cli.cli.evaluation_report import evaluation_sections
from peagle_cli.cli.sections import BY_POSITION, Section, as_markdown, shares
from peagle_cli.trace.events import METHOD_NAMES
from peagle_cli.train.curves import svg
from peagle_cli.train.log import StepRecord, ValidationRecord
from peagle_cli.wording import counted

if TYPE_CHECKING:
    from peagle_cli.train.evaluate import Evaluation
    from peagle_cli.train.facts import Facts
    from peagle_cli.train.log import Record

CURVES = "training.svg"
ROWS = 12
"""Validations that the card's table has at most."""

_PURPOSE = """\
A speculative-decoding drafter in vLLM's form. What it drafts is always verified by the target, so it changes the speed
of a reply and never its text. It drafts for this target only: another fine-tune accepts far fewer of its tokens."""


def write_card(folder: Path, run: Path, evaluations: "Sequence[Evaluation]", about: str) -> None:
    """Write README.md and the curves into a drafter's `folder`, from the records of its `run`.

    `about` is Markdown on what no record tells: the data's sources and their licences. Raises `BadInputError` when the
    run left no records, `PeagleError` when the disk does not take the files.
    """
    from peagle_cli.train.disk import save_text
    from peagle_cli.train.facts import read_facts
    from peagle_cli.train.log import read_log

    facts, log = read_facts(run), read_log(run / "log.jsonl")
    mine = [one for one in evaluations if one.method == facts.settings.method]
    save_text(_curves(log), folder / CURVES)
    save_text(_card(facts, log, mine, about), folder / "README.md")


def _card(facts: "Facts", log: "Sequence[Record]", evaluations: "Sequence[Evaluation]", about: str) -> str:
    name = METHOD_NAMES[facts.settings.method]
    parts = [
        "---\nlicense: apache-2.0\n---",
        f"# {name} drafter for {facts.model}",
        _PURPOSE,
        as_markdown(Section("", ("", ""), _recipe(facts, log))),
        f"## Data\n\n{about.strip()}" if about.strip() else "",
        *(as_markdown(section) for section in evaluation_sections(evaluations)),
        "## Training",
        f"![Acceptance length on held-out conversations over hours of training]({CURVES})",
        as_markdown(_progress(log)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _recipe(facts: "Facts", log: "Sequence[Record]") -> list[tuple[str, str]]:
    settings, last = facts.settings, log[-1] if log else None
    rows = [
        ("parameters", f"{facts.parameters / 1e6:.1f} million"),
        ("layers", str(settings.layer_count)),
        ("draft vocabulary", f"{settings.draft_vocab:,} tokens"),
        ("trained on", f"{facts.conversations:,} conversations, {facts.answer_tokens:,} answer tokens ({facts.data})"),
        ("started from", facts.start or "the target's own last state and head"),
        ("tokens per training draft", str(settings.train_depth)),
        (
            "learning rates",
            f"{settings.matrix_rate:g} matrices (Muon), {settings.head_rate:g} head, {settings.vector_rate:g} vectors",
        ),
        ("batch", f"{settings.batch_tokens:,} tokens"),
        ("machine", f"{facts.machine}, {counted(facts.threads, 'thread')}, torch {facts.torch}"),
    ]
    if settings.method == "peagle":
        rows.insert(6, ("drafts that go one mask slot deeper", f"{settings.keep:.0%}"))
    if last:
        rows.insert(6, ("training", f"{last.seconds / 3600:.1f} hours, {last.step:,} steps, {last.tokens:,} tokens"))
    return rows


def _progress(log: "Sequence[Record]") -> Section:
    validations = [record for record in log if isinstance(record, ValidationRecord)]
    chosen = validations[:: max(1, -(-len(validations) // (ROWS - 1)))]
    if validations and chosen[-1] is not validations[-1]:
        chosen.append(validations[-1])
    depths = list(validations[-1].acceptance_length) if validations else []
    rows = [
        (
            f"{record.seconds / 3600:.1f}",
            f"{record.tokens:,}",
            *(f"{record.acceptance_length[depth]:.2f}" for depth in depths),
            shares(record.per_position),
        )
        for record in chosen
    ]
    return Section("", ("hours", "tokens", *(f"K = {depth}" for depth in depths), BY_POSITION), rows)


def _curves(log: "Sequence[Record]") -> str:
    validations = [record for record in log if isinstance(record, ValidationRecord)]
    depths = validations[-1].acceptance_length if validations else {}
    curves = {
        f"K = {depth}": [(record.seconds / 3600, record.acceptance_length[depth]) for record in validations]
        for depth in depths
    }
    if not curves:
        curves = {"loss": [(record.seconds / 3600, record.loss) for record in log if isinstance(record, StepRecord)]}
        return svg("loss", "hours of training", curves)
    return svg("acceptance length on held-out conversations", "hours of training", curves)
