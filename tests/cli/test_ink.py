"""How tokens are told apart on a terminal that scrolls."""

import pytest

from peagle_cli.cli.ink import Ink
from peagle_cli.tui.model import Kind, Span


def test_signs_tell_states_apart_where_there_are_no_styles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    ink = Ink(None)
    ink.rejected = "all"
    kinds = (Kind.ACCEPTED, Kind.BONUS, Kind.CORRECTION, Kind.REJECTED, Kind.DISCARDED)
    assert ink.written(Span("x", kind) for kind in kinds) == "x+x→x[-x-](-x-)"
