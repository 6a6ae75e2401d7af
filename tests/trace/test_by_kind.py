import pytest

from peagle_cli.trace.by_kind import AcceptanceByKind, KindAcceptance
from peagle_cli.trace.kinds import TokenKind
from peagle_cli.trace.metrics import Metrics
from tests.tui.batches import batch


def test_counts_a_draft_at_its_position_under_its_kind() -> None:
    fold = AcceptanceByKind([batch([" a", ".", " b"], 2, "!"), batch([" c", " 1"], 0, " d")])
    assert fold.counts(TokenKind.WORD, 0) == (2, 1)
    assert fold.counts(TokenKind.PUNCTUATION, 1) == (1, 1)
    assert fold.counts(TokenKind.NUMBER, 1) == (1, 0)
    assert fold.counts(TokenKind.WORD, 2) == (1, 0)
    assert fold.counts(TokenKind.WORD, 7) == (0, 0)
    assert fold.positions == 3
    assert fold.by_kind()[TokenKind.CODE] == KindAcceptance((), ())


def test_rejected_drafts_do_not_change_where_the_reply_stands() -> None:
    """A draft that opens code makes the drafts behind it code; rejected, it leaves the reply as it was."""
    fold = AcceptanceByKind([batch(["`", "x"], 0, " word"), batch([" next"], 1, ".")])
    assert fold.counts(TokenKind.CODE, 0) == (1, 0)
    assert fold.counts(TokenKind.CODE, 1) == (1, 0)
    assert fold.counts(TokenKind.WORD, 0) == (1, 1)


def test_the_targets_own_tokens_open_code_too() -> None:
    fold = AcceptanceByKind([batch([" see"], 1, " `"), batch(["x", "` now", " y"], 3, ".")])
    assert fold.counts(TokenKind.CODE, 0) == (1, 1)
    assert fold.counts(TokenKind.CODE, 1) == (1, 1)
    assert fold.counts(TokenKind.WORD, 2) == (1, 1)


def test_all_kinds_together_are_the_acceptance_per_position() -> None:
    events = [
        batch([" a", "``", "1"], 3, " "),
        batch(["\n", "```", "x", "y"], 2, "z"),
        batch(["q", "", "."], 1, "r"),
        batch("", 0, " plain"),
        batch([" 1", "2"], 0, "3"),
    ]
    fold, metrics = AcceptanceByKind(events), Metrics(events)
    for position, share in enumerate(metrics.per_position_acceptance):
        drafts, accepted = (sum(n) for n in zip(*(fold.counts(kind, position) for kind in TokenKind), strict=True))
        assert accepted / drafts == pytest.approx(share)
