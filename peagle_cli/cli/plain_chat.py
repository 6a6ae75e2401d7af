"""`peagle chat --plain` on a terminal: a conversation that stays in the terminal's scrollback.

The prompt is a line that readline edits; the reply streams below it in the transcript's own styles. Nothing is drawn
twice, and the terminal wraps the lines, so that what is copied has none that the model did not break.
"""

import contextlib
from collections.abc import Callable, Sequence
from typing import NoReturn

import typer

from peagle_cli import locations
from peagle_cli.cli.ink import Ink
from peagle_cli.cli.line_editor import Interruptions, LineEditor, unechoed
from peagle_cli.cli.loading import loading_shown
from peagle_cli.cli.streams import write
from peagle_cli.engine.protocol import EngineInfo
from peagle_cli.errors import EXIT_INTERRUPTED, BadInputError
from peagle_cli.models.progress import OnProgress
from peagle_cli.text import printable
from peagle_cli.trace.events import METHOD_NAMES
from peagle_cli.tui.commands import COMMANDS, parse
from peagle_cli.tui.completion import proposals
from peagle_cli.tui.editor import edit
from peagle_cli.tui.history import PromptHistory
from peagle_cli.tui.model import Kind, Rejected
from peagle_cli.tui.options import ChatOptions
from peagle_cli.tui.session import NotOpened, Phase
from peagle_cli.tui.talk import Talk

_LOOK_S = 0.1  # between two looks at whether Ctrl+C was pressed, while the engine is busy
_REJECTED: dict[Rejected, tuple[Rejected, str]] = {  # what follows each, in words
    "first": ("all", "Rejected drafts and those behind them are shown."),
    "all": ("none", "No rejected drafts are shown."),
    "none": ("first", "Rejected drafts are shown."),
}


def converse(options: ChatOptions) -> NoReturn:
    """Talk until the user leaves: raises `typer.Exit` then, and `PeagleError` when the engine cannot be opened."""
    with contextlib.closing(_PlainChat(options)) as chat:
        chat.run()


class _PlainChat:
    def __init__(self, options: ChatOptions) -> None:
        self._talk = Talk(options)
        self._ink = Ink(options.theme)
        self._editor = LineEditor(PromptHistory(locations.prompts() if options.record else None), self._completions)
        self._shown = 0  # spans of the transcript
        self._unsure = False  # whether to leave: Ctrl+C was pressed once
        self._commands: dict[str, Callable[[], None]] = {
            "auto": self._toggle_auto,
            "retry": self._retry,
            "clear": self._clear,
            "rejected": self._rejected,
            "edit": lambda: self._ask(edit("")),
            "restart": self._open,
            "help": self._help,
            "exit": self._leave,
        }
        self._commands_with_argument: dict[str, Callable[[str], None]] = {
            "depth": self._set_depth,
            "method": self._set_method,
        }

    def run(self) -> NoReturn:
        """Read and answer. Raises `typer.Exit`."""
        self._open()
        while True:
            try:
                line = self._read()
                if line.startswith("/"):
                    self._obey(line)
                elif line:
                    self._ask(line)
            except BadInputError as error:
                self._say(str(error), Kind.ERROR)

    def close(self) -> None:
        """Leave no engine behind."""
        self._talk.session.close()

    # What is read

    def _read(self) -> str:
        write("\n")
        try:
            line = self._editor.read(self._setting(), lambda text: self._ink.styled(text, Kind.SPEAKER)).strip()
        except EOFError:
            write("\n")
            raise typer.Exit(0) from None
        except KeyboardInterrupt:
            write("\n")
            if self._unsure:
                raise typer.Exit(EXIT_INTERRUPTED) from None
            self._unsure = True
            self._say("Press Ctrl+C again, or Ctrl+D, to leave.")
            return ""
        self._unsure = False
        if line:
            self._editor.remember(line)
        return line

    def _setting(self) -> str:
        wanted = self._talk.conversation.wanted
        if wanted is None:
            return "› "
        depth = "" if wanted.method == "none" else f" {'auto' if self._talk.conversation.auto else wanted.depth}"
        return f"{METHOD_NAMES[wanted.method]}{depth} › "

    def _completions(self, typed: str) -> Sequence[str]:
        depths = [str(depth) for depth in range(self._talk.conversation.deepest + 1)]
        lines = (proposal.line for proposal in proposals(typed, {"depth": depths}))
        return [line for line in lines if self._knows(line.removeprefix("/").partition(" ")[0])]

    def _knows(self, name: str) -> bool:
        return name in self._commands or name in self._commands_with_argument

    def _obey(self, line: str) -> None:
        command, argument = parse(line)
        if run := self._commands_with_argument.get(command.name):
            run(argument)
        elif do := self._commands.get(command.name):
            do()
        else:
            raise BadInputError(f"/{command.name} is the screen's.", "It opens with `peagle chat`, without --plain.")

    # What the commands do

    def _ask(self, prompt: str) -> None:
        if not prompt:
            return
        if self._talk.phase is Phase.BROKEN:
            raise BadInputError("The engine is gone.", "/restart starts it again.")
        self._talk.ask(prompt)
        self._follow()

    def _retry(self) -> None:
        self._talk.retry()
        self._follow()

    def _set_depth(self, depth: str) -> None:
        if not depth.isdecimal():
            raise BadInputError("The depth is a number of tokens.")
        self._talk.conversation.set_depth(int(depth))

    def _set_method(self, name: str) -> None:
        self._talk.conversation.set_method(next(method for method in METHOD_NAMES if method == name))

    def _toggle_auto(self) -> None:
        self._talk.conversation.toggle_auto()

    def _rejected(self) -> None:
        self._ink.rejected, told = _REJECTED[self._ink.rejected]
        self._say(told)

    def _clear(self) -> None:
        self._talk.clear()
        self._shown = len(self._talk.transcript.spans)
        self._say("A new conversation begins.")

    def _help(self) -> None:
        for command in COMMANDS:
            if self._knows(command.name) and command.name != "help":
                self._say(f"{command.usage:<14}{command.help}")
        self._say("Ctrl+C ends a reply. Ctrl+D leaves.")

    def _leave(self) -> None:
        raise typer.Exit(0)

    # What the engine does

    def _open(self) -> None:
        """Open the engine and wait for it. Raises what keeps it from being opened, `typer.Exit` after Ctrl+C."""
        self._talk.session.open(self._talk.conversation.wanted)
        with loading_shown() as on_progress, Interruptions() as interruptions:
            while self._talk.phase is Phase.LOADING:
                self._take(on_progress)
                if interruptions.count:
                    raise typer.Exit(EXIT_INTERRUPTED)
        if (info := self._talk.conversation.info) and self._talk.phase is not Phase.BROKEN:
            self._introduce(info)
        self._show()  # the legend, and why there is no engine where it could not be started again
        write("\n")

    def _introduce(self, info: EngineInfo) -> None:
        self._say(f"{info.model} · {info.engine} {info.machine.where}")
        self._say("/help lists the commands, Ctrl+D leaves.")
        write("\n")

    def _follow(self) -> None:
        """Show the reply as it comes. Ctrl+C ends it; once more, it leaves."""
        write("\n")
        stopped = False
        with unechoed(), Interruptions() as interruptions:
            while self._talk.session.busy:
                self._take(None)
                self._show(without=frozenset({Kind.PROMPT, Kind.SPEAKER}))  # the reader wrote the one, and knows both
                if interruptions.count > 1:
                    write("\n")
                    raise typer.Exit(EXIT_INTERRUPTED)
                if interruptions.count and not stopped:
                    self._talk.stop()
                    stopped = True
        write("\n")

    def _take(self, on_progress: OnProgress | None) -> None:
        for update in self._talk.session.wait(_LOOK_S):
            if isinstance(update, NotOpened) and self._talk.conversation.info is None:
                raise update.error
            self._talk.take(update)
        if on_progress and self._talk.loading:
            on_progress(self._talk.loading)

    # What is written

    def _show(self, without: frozenset[Kind] = frozenset()) -> None:
        """Write what the transcript has got since the last time."""
        spans = self._talk.transcript.spans[self._shown :]
        self._shown += len(spans)
        if text := self._ink.written(span for span in spans if span.kind not in without):
            write(text)

    def _say(self, text: str, kind: Kind = Kind.NOTE) -> None:
        write(self._ink.styled(printable(text), kind) + "\n")
