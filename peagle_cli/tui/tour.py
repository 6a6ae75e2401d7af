"""The tour: how speculative decoding works, in four pages made of real steps. Pure.

Each page fits a terminal of 60 x 20: its lines are at most `LINES`, and as wide as asked for.
"""

import textwrap
from itertools import islice
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size

from peagle_cli.text import one_line
from peagle_cli.trace.events import METHOD_NAMES, DraftBatch, Method, Token
from peagle_cli.tui.keys import KeyNames
from peagle_cli.tui.lesson import Example, Lesson
from peagle_cli.tui.model import Kind, token_kind
from peagle_cli.tui.widgets.panel import bar
from peagle_cli.wording import counted

LINES = 15
_MOST_OUTCOMES = 6  # lines for what became of the drafts of a step
_WORD = 14  # cells
_BAR = 12
_MASK = "▢"

Piece = tuple[str, str]
"""Text, and the ink of `Panel` that it is drawn in."""

Line = list[Piece]


class Page(NamedTuple):
    """One page."""

    title: str
    lines: list[Line]


def pages(lesson: Lesson, width: int, key: KeyNames) -> list[Page]:
    """All pages, `width` cells wide. The lesson must have an example; `key` names keys of the chat."""
    example = lesson.example()
    assert example is not None
    return [
        Page("A step", _step(lesson, example, width)),
        Page("K passes, or one", _passes(lesson, example, width, key)),
        Page("The free token", _free(example, width)),
        Page("Why not deeper?", _deeper(lesson, example.batch.method, width, key)),
    ]


def _step(lesson: Lesson, example: Example, width: int) -> list[Line]:
    batch = example.batch
    name, drafts = METHOD_NAMES[batch.method], counted(len(batch.drafted), "token")
    lines = _prose(
        f"The model writes one token per pass. A drafter, small and quick, guesses the next ones, and the model checks "
        f"all of them in one pass. A step of {lesson.source}, in which {name} drafted {drafts}:",
        width,
    )
    lines += [[], [("  … ", "label"), (_tail(example.before, width - 6), "value")], []]
    lines += _outcomes(batch)
    return [*lines, [], *_prose(f"{counted(batch.emitted, 'token')} for one pass of the model, text unchanged.", width)]


def _outcomes(batch: DraftBatch) -> list[Line]:
    """A line for each draft and for a bonus; where there are too many, the last one says how many more there were."""
    lines = [_outcome(batch, position) for position in range(len(batch.drafted))]
    if batch.accepted == len(batch.drafted):
        lines.append([("  +    ", "label"), (_word(batch.bonus), "bonus"), ("the model adds", "label")])
    if len(lines) <= _MOST_OUTCOMES:
        return lines
    shown = _MOST_OUTCOMES - 1
    hidden = len(batch.drafted) - shown
    right = max(0, batch.accepted - shown)
    rest = "all behind a wrong one" if batch.accepted < shown else f"{right} of them as the model would"
    return [*lines[:shown], [("  …  ", "label"), (f"{hidden} more, {rest}", "label")]]


def _outcome(batch: DraftBatch, position: int) -> Line:
    token, number = batch.drafted[position], (f"  {position + 1}  ", "label")
    if position < batch.accepted:
        return [number, ("✓ ", "accepted"), (_word(token), "accepted"), ("as the model would", "label")]
    if position > batch.accepted:
        return [number, ("· ", "off"), (_word(token), "off"), ("behind a wrong one", "label")]
    own = (_text(batch.bonus), "correction")
    return [number, ("✗ ", "rejected"), (_word(token), "rejected"), ("the model: ", "label"), own]


def _passes(lesson: Lesson, example: Example, width: int, key: KeyNames) -> list[Line]:
    eagle, peagle = (lesson.example(method) or example for method in ("eagle3", "peagle"))
    lines = _prose("EAGLE-3 drafts a token per pass of its drafter: each is read by the next pass.", width)
    before = _tail(eagle.before, 12)
    for number, token in enumerate(eagle.batch.drafted[:3], 1):
        lines.append(_arrow(f"pass {number}", f"… {before}", [token]))
        before = _text(token)
    lines += [[], *_prose("P-EAGLE drafts all of them in one pass: masks stand for the tokens not known yet.", width)]
    drafts = peagle.batch.drafted[:3]
    masks = f" {_MASK}" * (len(drafts) - 1)
    lines.append(_arrow("pass 1", f"… {_tail(peagle.before, 12 - len(masks))}{masks}", drafts))
    lines.append([])
    for method in ("eagle3", "peagle"):
        if measured := lesson.mean_draft(method):
            seconds, tokens = measured
            figures = [(f"{1e3 * seconds:6.1f} ms", "hero"), (f" for {tokens:.1f} tokens, per step", "label")]
            lines.append([(f"  {METHOD_NAMES[method]:<9}", "value"), *figures])
        else:
            untried = f"not measured here: {key('chat.method')} changes to it"
            lines.append([(f"  {METHOD_NAMES[method]:<9}", "value"), (untried, "label")])
    return lines


def _free(example: Example, width: int) -> list[Line]:
    batch = example.batch
    read = (_tail(example.before, _WORD - 2), *map(_text, batch.drafted))
    lines = _prose("Checking is reading: in one pass, the model tells what it would say behind every token.", width)
    lines += [[], [(f"  {'it reads':<{_WORD}} it would say", "title")]]
    kind = token_kind(batch, batch.accepted)
    first = max(0, batch.accepted - _MOST_OUTCOMES + 1)
    for position, text in islice(enumerate(read), first, first + _MOST_OUTCOMES):
        left = (f"  {set_cell_size(text, _WORD)} ", "value" if position <= batch.accepted else "off")
        if position < batch.accepted:
            lines.append([left, (_word(batch.drafted[position]), "accepted"), ("✓ as drafted", "label")])
        elif position == batch.accepted:
            remark = "the bonus" if kind is Kind.BONUS else "a correction"
            lines.append([left, (_word(batch.bonus), str(kind)), (f"← free: {remark}", "label")])
        else:
            lines.append([left, (set_cell_size("–", _WORD), "off"), ("it read a wrong token", "label")])
    most = len(batch.drafted) + 1
    return [
        *lines,
        [],
        *_prose(
            f"What it says behind the last right draft is there anyway. So a step gives 1 token when all drafts are "
            f"wrong, and {most} when all {len(batch.drafted)} are right; never less than without drafts.",
            width,
        ),
    ]


def _deeper(lesson: Lesson, method: Method, width: int, key: KeyNames) -> list[Line]:
    name = METHOD_NAMES[method]
    drafts = lesson.drafts(method)
    lines = _prose(
        f"A draft counts only if all before it were right, and each one costs time. {name}, {drafts} drafts of "
        f"{lesson.source}:",
        width,
    )
    lines.append([])
    predictions = lesson.predictions(method)
    rates = lesson.acceptance(method)[: LINES - 7]
    if not predictions:
        lines.append([(f"  {'position':<10}accepted", "title")])
        lines += [
            [(f"  {i:<10}", "value"), (bar(rate, 2 * _BAR), "draft"), (f" {rate:4.0%}", "value")]
            for i, rate in enumerate(rates, 1)
        ]
        return [
            *lines,
            [],
            *_prose(
                f"What depth costs shows when there are steps at two depths: {key('chat.shallower')} and "
                f"{key('chat.deeper')} change it.",
                width,
            ),
        ]
    best = max(predictions, key=lambda prediction: prediction.tokens_per_second)
    lines.append([(f"  depth  {'accepted':<{_BAR + 5}}  gives   ms  tokens/s", "title")])
    for prediction in predictions[: len(rates) + 1]:
        rate = rates[prediction.depth - 1] if prediction.depth else None
        share = f"{bar(rate, _BAR)}{rate:5.0%}" if rate is not None else " " * (_BAR + 5)
        step_ms = 1e3 * (prediction.draft_s + prediction.verify_s)
        ink = "hero" if prediction is best else "value"
        lines.append(
            [
                (f"  {prediction.depth:>5}  ", ink),
                (share, "draft"),
                (
                    f"  {prediction.mean_acceptance_length:5.2f} {step_ms:4.0f}  {prediction.tokens_per_second:8.1f}",
                    ink,
                ),
                (" ←" if prediction is best else "", "correction"),
            ]
        )
    return [*lines, *_prose(f"Predicted from these steps: fastest at depth {best.depth}.", width)]


def _arrow(label: str, read: str, drafted: list[Token] | tuple[Token, ...]) -> Line:
    words: Line = [(f"  {label}  ", "label"), (set_cell_size(read, _WORD + 2), "value"), (" → ", "label")]
    return [*words, *(piece for token in drafted for piece in ((_text(token), "accepted"), ("  ", "label")))]


def _prose(text: str, width: int) -> list[Line]:
    return [[(line, "value")] for line in textwrap.wrap(text, width, break_on_hyphens=False)]


def _text(token: Token) -> str:
    """A token as it stands in a line: what cannot be seen of it is marked, and it is cut where it is long."""
    text = one_line(token.text).replace(" ", "␣") or "∅"
    return _cut(text, _WORD - 2)


def _cut(text: str, cells: int) -> str:
    return text if cell_len(text) <= cells else set_cell_size(text, cells - 1) + "…"


def _word(token: Token) -> str:
    return set_cell_size(_text(token), _WORD)


def _tail(text: str, cells: int) -> str:
    """The end of `text` in one line of so many cells."""
    line = one_line(text.rstrip())
    while line and cell_len(line) > cells:
        line = line[1:]
    return line
