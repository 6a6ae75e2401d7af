"""What a target is asked to write."""

from typing import NamedTuple

CONTEXT = 2048
"""Longest text in tokens."""


class Order(NamedTuple):
    """A text to continue by at most `max_tokens` tokens. `seed` makes sampling repeatable."""

    ids: list[int]
    max_tokens: int
    temperature: float
    seed: int
