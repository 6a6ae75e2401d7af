"""The errors a user is meant to read: one sentence, what to do about it, and an exit code."""

EXIT_RUNTIME = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130


class PeagleError(Exception):
    """Something went wrong while running.

    `message` is one sentence that says what is wrong, `hint` one that says what to do.
    """

    exit_code = EXIT_RUNTIME

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()


class BadInputError(PeagleError):
    """What the user gave cannot be used: an option, a model, a file, a prompt."""

    exit_code = EXIT_USAGE
