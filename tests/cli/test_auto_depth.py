"""`peagle chat --auto` in a pipe, on the tiny model, whose drafters are never right."""

from peagle_cli.trace.events import Changed, DraftBatch, decode
from tests.cli.program import Program


def test_the_depth_follows_the_advice_and_the_text_stays(program: Program, tiny_options: list[str]) -> None:
    chat = ("chat", "Hello", *tiny_options, "--max-tokens", "120", "--no-record", "--output", "jsonl")
    events = [decode(line) for line in program.run(*chat, "--auto").stdout.splitlines()]
    assert sum(isinstance(event, Changed) and event.what == "depth" for event in events) > 3, "it tries several"
    plain = [decode(line) for line in program.run(*chat, "--method", "none").stdout.splitlines()]
    words = [
        [token.id for event in run if isinstance(event, DraftBatch) for token in event.tokens]
        for run in (events, plain)
    ]
    assert words[0] == words[1]
