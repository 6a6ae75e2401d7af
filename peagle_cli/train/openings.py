"""The openings from which the target writes its own prompts."""

import random

OPENINGS = (
    "",
    "Write a Python function that ",
    "Complete the following code:\n\n",
    "Fix the bug in this code:\n\n",
    "Explain ",
    "What is the difference between ",
    "Why do ",
    "How can I ",
    "Give me a list of ",
    "List five ",
    "Write an e-mail to ",
    "Write a short story about ",
    "Write a blog post about ",
    "Summarize the following text:\n\n",
    "Rewrite the following sentence ",
    "Solve this problem step by step: ",
    "A train ",
    "Calculate ",
    "You are ",
)
"""How people begin: with code, explanations, lists, e-mails, stories, mathematics. "" leaves all of it to the
target."""


def opening(index: int) -> str:
    """The opening of the target's own prompt number `index`."""
    return random.Random(f"opening {index}").choice(OPENINGS)
