"""Reading what the user types, line by line, on a terminal that scrolls.

The line is edited by readline where Python has it: with its keys, the prompts of earlier sessions, and commands that
complete. Without it, the terminal's own keys remain.
"""

import contextlib
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from types import FrameType

from peagle_cli.errors import BadInputError
from peagle_cli.tui.history import PromptHistory

try:
    import readline
except ImportError:  # on Windows
    _readline = None
else:
    _readline = readline

try:
    import termios
except ImportError:  # on Windows
    _termios = None
else:
    _termios = termios


class LineEditor:
    """Reads lines. `complete` tells every line that what is typed can become."""

    def __init__(self, history: PromptHistory, complete: Callable[[str], Sequence[str]]) -> None:
        self._history = history
        self._complete = complete
        self._proposed: Sequence[str] = ()
        if _readline is not None:
            self._set_up()

    def read(self, prompt: str, style: Callable[[str], str]) -> str:
        """The next line, without its newline; several lines where they are pasted. Raises `EOFError` at the end of the
        input, `BadInputError` for what is not text, and `KeyboardInterrupt`."""
        if _readline is not None:
            before, _, behind = style("\0").partition("\0")
            # readline counts cells, but not of what stands between these two
            prompt = f"\x01{before}\x02{prompt}\x01{behind}\x02"
        try:
            line = input(prompt)
            line.encode()  # some locales let pass what is none
        except UnicodeError as error:
            raise BadInputError("That is not UTF-8 text.", "Set the terminal to that encoding.") from error
        return line

    def remember(self, line: str) -> None:
        """Let ↑ find this line first."""
        self._history.add(line)
        if _readline is not None:
            _readline.add_history(line)

    def _set_up(self) -> None:
        assert _readline is not None
        _readline.set_auto_history(False)
        _readline.set_completer_delims("")
        _readline.set_completer(self._completion)
        editline = "libedit" in (_readline.__doc__ or "")  # as on macOS, with words of its own
        _readline.parse_and_bind("bind ^I rl_complete" if editline else "tab: complete")
        _readline.parse_and_bind("set enable-bracketed-paste on")  # a newline in it sends nothing
        for index in range(len(self._history)):
            _readline.add_history(self._history[index])

    def _completion(self, text: str, number: int) -> str | None:
        if number == 0:
            self._proposed = self._complete(text)
        return self._proposed[number] if number < len(self._proposed) else None


@contextlib.contextmanager
def unechoed() -> Iterator[None]:
    """Keys pressed meanwhile are not written into what is shown, but kept for the next line."""
    if _termios is None:
        yield
        return
    before = _termios.tcgetattr(sys.stdin)
    without = [*before]
    without[3] &= ~_termios.ECHO
    _termios.tcsetattr(sys.stdin, _termios.TCSANOW, without)
    try:
        yield
    finally:
        _termios.tcsetattr(sys.stdin, _termios.TCSANOW, before)


class Interruptions:
    """Counts Ctrl+C while it is entered, so that nothing is torn out of what it does."""

    def __init__(self) -> None:
        self.count = 0

    def __enter__(self) -> "Interruptions":
        self._before = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
