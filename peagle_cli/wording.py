"""Numbers as reports and screens have them."""

NONE = "–"
"""What stands for a number that there is not."""


def number(value: float | None, form: str) -> str:
    """A number in the given format, a dash for None."""
    return NONE if value is None else format(value, form)


def counted(count: int, noun: str) -> str:
    """So many of something: "1 token", "3 tokens"."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
