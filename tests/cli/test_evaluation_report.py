"""Evaluations as tables: engines are compared on what both answered, and on what is equal of their replies."""

import pytest
from msgspec.structs import replace

from peagle_cli.cli.evaluation_report import evaluation_sections
from peagle_cli.errors import BadInputError
from tests.evaluations import OURS, THEIRS


def test_one_engine_has_a_table_for_every_set_of_prompts() -> None:
    deeper, elsewhere = replace(OURS, depth=4), replace(OURS, prompts="gsm8k")
    sections = evaluation_sections([OURS, elsewhere, deeper])
    assert [section.title.split(" (")[0] for section in sections] == ["P-EAGLE on mt_bench", "P-EAGLE on gsm8k"]
    assert [row[:2] for row in sections[0].rows] == [("3", "2.25"), ("4", "2.25")]


def test_two_engines_are_compared_overall_and_as_far_as_replies_are_equal() -> None:
    """Of the second reply, the first step alone ends before the parting."""
    *_, comparison = evaluation_sections([OURS, THEIRS])
    assert comparison.rows == [("P-EAGLE on mt_bench", "3", "2", "2.25", "1.80", "-20.0%", "70%", "+0.0%")]


def test_they_are_compared_on_the_prompts_that_both_answered() -> None:
    fewer = replace(THEIRS, replies=1, by_reply=THEIRS.by_reply[:1])
    *_, comparison = evaluation_sections([OURS, fewer])
    assert comparison.rows == [("P-EAGLE on mt_bench", "3", "1", "2.00", "2.00", "+0.0%", "100%", "+0.0%")]


def test_replies_of_other_lengths_are_not_compared() -> None:
    with pytest.raises(BadInputError, match="up to 5 tokens in torch and up to 30 in vllm"):
        evaluation_sections([OURS, replace(THEIRS, max_tokens=30)])


def test_nothing_measured_has_no_table() -> None:
    assert evaluation_sections([]) == []
