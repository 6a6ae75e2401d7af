"""The chat: one conversation with one engine, every draft batch as it is verified."""

from collections.abc import Callable, Iterable
from typing import ClassVar, get_args

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.screen import Screen
from textual.timer import Timer
from textual.widgets import Footer, Static, TextArea

from peagle_cli.engine.protocol import Command, Pause, Request, Resume, Step, Stop
from peagle_cli.errors import EXIT_INTERRUPTED, BadInputError, PeagleError
from peagle_cli.models.progress import Progress
from peagle_cli.trace.events import Changed, DraftBatch, Event, Failed, Finished, Method
from peagle_cli.tui.commands import parse
from peagle_cli.tui.conversation import Conversation
from peagle_cli.tui.model import Kind, Transcript
from peagle_cli.tui.options import ChatOptions
from peagle_cli.tui.screens.help import HelpScreen
from peagle_cli.tui.session import Idle, NotOpened, Opened, Phase, Refused, Session, Update
from peagle_cli.tui.widgets.figures import Figures
from peagle_cli.tui.widgets.header import ChatHeader
from peagle_cli.tui.widgets.prompt import Prompt
from peagle_cli.tui.widgets.side import Side
from peagle_cli.tui.widgets.status import Situation, StatusLine
from peagle_cli.tui.widgets.transcript import DEPTH, Rejected, TranscriptView

_FRAMES_PER_S = 30
_FRAMES_PER_BATCHES, _FRAMES_PER_FIGURES, _FRAMES_PER_PLOT = 3, 8, 16
"""Figures change about four times a second, which is often enough to read; a plot takes longer to draw."""
_NOTICE_S = 3.0
_REJECTED: dict[Rejected, str] = {
    "first": "Showing the drafts that were rejected.",
    "all": "Showing the drafts that were rejected, and those discarded behind them.",
    "none": "Showing the reply alone.",
}


class ChatScreen(Screen[None]):
    """Reads the session's updates thirty times a second while there are any to come, and draws what they changed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f2", "screen.next_method", "method", tooltip="Next method", id="chat.method"),
        Binding("f3", "screen.deepen(-1)", "shallower", tooltip="Draft shallower", id="chat.shallower", group=DEPTH),
        Binding("f4", "screen.deepen(1)", "deeper", tooltip="Draft deeper", id="chat.deeper", group=DEPTH),
        Binding("f5", "screen.pause", "pause", tooltip="Pause, go on", id="chat.pause"),
        Binding("f8", "screen.step", "step", tooltip="Take one step", id="chat.step"),
        Binding("f9", "screen.rejected", "rejected", tooltip="Show, hide rejected drafts", id="chat.rejected"),
        Binding("escape", "stop", "stop", key_display="esc", tooltip="Stop the reply", id="chat.stop"),
        Binding("ctrl+r", "restart", "restart", tooltip="Start the engine again", id="chat.restart"),
        Binding("ctrl+c", "interrupt", "Stop; again: leave", show=False, priority=True, id="chat.interrupt"),
        Binding("ctrl+d", "leave", "Leave", show=False, id="chat.leave"),
        Binding("pageup", "page(-1)", "A page up", show=False, id="chat.page-up"),
        Binding("pagedown", "page(1)", "A page down", show=False, id="chat.page-down"),
        Binding("f1", "help", "help", tooltip="This page", id="chat.help"),
    ]

    def __init__(self, options: ChatOptions) -> None:
        super().__init__()
        self.HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-normal"), (150, "-wide")]
        self.VERTICAL_BREAKPOINTS = [(0, "-lowest"), (26, "-low"), (36, "-high"), (50, "-tall")]
        self._session = Session(options.spec)
        self._conversation = Conversation(options)
        self._transcript = Transcript()
        self._transcript.add_legend()
        self._loading: Progress | None = None
        self._waiting: str | None = options.prompt  # to be asked as soon as the engine is ready
        self._paused = False
        self._leaving = False
        self._frame = 0
        self._notice: Timer | None = None

    @property
    def deepest(self) -> int:
        """How deep can be drafted at most."""
        return self._conversation.deepest

    def compose(self) -> ComposeResult:
        """Header, transcript and figures side by side, status, prompt, keys."""
        yield ChatHeader(id="header")
        yield Figures(id="strip")
        with Horizontal(id="body"):
            yield TranscriptView(id="transcript")
            yield Side(id="side")
        yield StatusLine(id="status")
        with Horizontal(id="entry"):
            yield Static("›", classes="caret")
            yield Prompt(id="prompt")
        yield Footer()

    def on_mount(self) -> None:
        """Paint first, then open the engine."""
        self._view.show(self._transcript)
        self._timer = self.set_interval(1 / _FRAMES_PER_S, self._drain, pause=True)
        self._prompt.focus()
        self._show_state()
        if self._waiting is not None:
            self._add_prompt(self._waiting)
        self.call_after_refresh(self.action_restart)

    def on_unmount(self) -> None:
        """Leave no engine behind."""
        self._session.close()

    # What arrives

    def _drain(self) -> None:
        self._frame += 1
        self.receive(self._session.poll())
        if not self._session.busy:
            self._timer.pause()

    def receive(self, updates: Iterable[Update]) -> None:
        """Take in what the engine reported, and draw once."""
        updates = list(updates)
        for update in updates:
            self._take(update)
        if updates:
            self._view.update()
        ended, reply = not self._session.busy, self._conversation.reply
        if ended or self._frame % _FRAMES_PER_BATCHES == 0:
            self._side.show_batches(reply)
        if ended or self._frame % _FRAMES_PER_FIGURES == 0:
            self._side.show_figures(reply)
            self.query_one("#strip", Figures).show(reply)
        if ended or self._frame % _FRAMES_PER_PLOT == 0:
            self._side.show_course(reply)

    def _take(self, update: Update) -> None:
        match update:
            case Progress():
                self._loading = update
                self._show_state()
            case Opened(info=info):
                self._conversation.engine_opened(info)
                self._side.set_positions(self._conversation.deepest)
                self._ask_waiting()
            case NotOpened(error=BadInputError() as error):
                self.app.exit(error)  # no other try can help
            case NotOpened(error=error):
                self._add_error(error)
            case Refused(error=error):
                self._add_error(error)
                self._give_back(self._conversation.refused())
            case Idle():
                self._phase_changed()
                if self._view.has_focus and self._view.following:
                    self._prompt.focus()
            case _:
                self._take_event(update)

    def _take_event(self, event: Event) -> None:
        reply = self._conversation.reply
        if reply is None:  # it was cleared away
            return
        reply.add(event)
        match event:
            case DraftBatch():
                self._transcript.add_batch(event)
            case Changed():
                self._transcript.add_change(event)
            case Finished():
                self._transcript.add_note(reply.closing())
            case Failed():
                self._add_error(PeagleError(event.message, event.hint))

    def _add_error(self, error: PeagleError) -> None:
        self._transcript.add_note(error.message, Kind.ERROR)
        if error.hint:
            self._transcript.add_note(error.hint)
        self._phase_changed()

    # What the user asks for

    @on(Prompt.Sent)
    def _sent(self, message: Prompt.Sent) -> None:
        self._prompt.remember(message.text)
        if message.text.startswith("/"):
            self._obey(message.text)
        elif self._session.phase is Phase.REPLYING:
            self._give_back(message.text)
            self._tell("A reply is running: stop it first (esc).")
        elif self._waiting is not None:
            self._give_back(message.text)
            self._tell("One prompt waits for the engine already.")
        else:
            self._waiting = message.text
            self._add_prompt(message.text)
            self._ask_waiting()

    @on(TranscriptView.Typed)
    def _typed(self, message: TranscriptView.Typed) -> None:
        self._prompt.focus()
        self._prompt.insert(message.text)

    def _obey(self, line: str) -> None:
        try:
            command, argument = parse(line)
        except BadInputError as error:
            self._give_back(line)
            self._tell(str(error))
        else:
            self.call_next(self.run_action, f"{command.action}({argument!r})" if argument else command.action)

    def _add_prompt(self, text: str) -> None:
        self._transcript.add_turn("you")
        self._transcript.add_prompt(text)
        self._view.update()
        self._view.follow()

    def _give_back(self, text: str) -> None:
        if not self._prompt.text:
            self._prompt.replace_text(text)

    def _ask_waiting(self) -> None:
        if self._waiting is not None and self._session.phase is Phase.READY:
            prompt, self._waiting = self._waiting, None
            self._run(self._conversation.ask(prompt))
        else:
            self._phase_changed()

    def _run(self, request: Request, again: str = "") -> None:
        assert self._conversation.info is not None
        self._transcript.add_turn(self._conversation.info.model + again)
        self._transcript.begin_reply()
        self._paused = False
        self._session.run(request)
        self._timer.resume()
        self._phase_changed()
        self._view.update()
        self._view.follow()
        if not self._prompt.text:
            self._view.focus()  # single letters act there

    # Actions: by key, slash command and palette

    def action_deepen(self, by: int) -> None:
        """Draft deeper or shallower by this much, from the next step on."""
        self._change(lambda: self._conversation.deepen(by))

    def action_set_depth(self, depth: str) -> None:
        """Draft so many tokens per step, from the next step on."""
        if depth.isdecimal():
            self._change(lambda: self._conversation.set_depth(int(depth)))
        else:
            self._tell("The depth is a number of tokens.")

    def action_next_method(self) -> None:
        """Draft by the next of the engine's methods, from the next step on."""
        self._change(self._conversation.next_method)

    def action_set_method(self, method: Method) -> None:
        """Draft by this method, from the next step on."""
        self._change(lambda: self._conversation.set_method(method))

    def _change(self, change: Callable[[], list[Command]]) -> None:
        try:
            commands = change()
        except BadInputError as error:
            self._tell(str(error))
        else:
            for command in commands:
                self._session.control(command)
            self._show_setting()

    def action_stop(self) -> None:
        """End the reply after the step in progress; without one, go back to the prompt."""
        self._session.control(Stop())
        self._prompt.focus()

    def action_pause(self) -> None:
        """Hold the engine between two steps, or let it go on."""
        self._paused = not self._paused
        self._session.control(Pause() if self._paused else Resume())
        self._show_state()

    def action_step(self) -> None:
        """Take one step; pauses first."""
        if not self._paused:
            self.action_pause()
        self._session.control(Step())

    def action_retry(self) -> None:
        """Another reply to the last prompt, in place of the one it got."""
        if self._session.phase is not Phase.READY:
            self._tell("The engine is not ready for it.")
        elif (request := self._conversation.retry()) is None:
            self._tell("There is no prompt to ask again.")
        else:
            self._run(request, again=", again")

    def action_clear(self) -> None:
        """Begin a new conversation."""
        self._session.control(Stop())
        self._waiting = None
        self._conversation.clear()
        self._transcript = Transcript()
        self._transcript.add_legend()
        self._view.show(self._transcript)
        self.receive([])

    def action_rejected(self) -> None:
        """Show the rejected drafts, also what was drafted behind them, or neither."""
        choices = get_args(Rejected)
        self._view.rejected = choices[(choices.index(self._view.rejected) + 1) % len(choices)]
        self._tell(_REJECTED[self._view.rejected])

    def action_restart(self) -> None:
        """Open the engine, again if need be."""
        self._session.open()
        self._timer.resume()
        self._phase_changed()

    def action_theme(self) -> None:
        """The next theme."""
        self.app.call_next(self.app.run_action, "next_theme")

    def action_help(self) -> None:
        """What the screen shows, and its keys."""
        self.app.push_screen(HelpScreen([*self.BINDINGS, *TranscriptView.BINDINGS, *Prompt.BINDINGS]))

    def action_write(self) -> None:
        """Go to the prompt."""
        self._prompt.focus()

    def action_page(self, direction: int) -> None:
        """Leaf through the transcript from wherever the focus is."""
        (self._view.scroll_page_up if direction < 0 else self._view.scroll_page_down)()

    def action_interrupt(self) -> None:
        """Copy what is selected; or stop the reply; or leave, when asked twice."""
        if selected := self.get_selected_text() or self._prompt.selected_text:
            self.app.copy_to_clipboard(selected)
            self.clear_selection()
        elif self._session.phase is Phase.REPLYING:
            self.action_stop()
        elif self._leaving:
            self.app.exit(EXIT_INTERRUPTED)
        else:
            self._leaving = True
            self._tell("Press Ctrl+C again to leave.")

    def action_leave(self) -> None:
        """End the chat."""
        self.app.exit(0)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Dim the keys that would do nothing now; offer a restart only where it helps."""
        if action in ("pause", "step", "stop"):
            return True if self._session.phase is Phase.REPLYING else None
        if action == "restart":
            return self._session.phase is Phase.BROKEN
        return True

    # What is shown

    @property
    def _view(self) -> TranscriptView:
        return self.query_one(TranscriptView)

    @property
    def _prompt(self) -> Prompt:
        return self.query_one(Prompt)

    @property
    def _side(self) -> Side:
        return self.query_one(Side)

    def _show_setting(self) -> None:
        self.query_one(ChatHeader).describe(self._conversation.info, self._conversation.wanted)

    def _phase_changed(self) -> None:
        self._show_setting()
        self._show_state()
        self.refresh_bindings()

    @on(TranscriptView.Followed)
    @on(TextArea.Changed)
    def _show_state(self) -> None:
        """Say in the status line what is going on."""
        self._leaving = False
        self.query_one(StatusLine).describe(
            Situation(
                self._session.phase,
                loading=self._loading,
                waiting=self._waiting is not None,
                paused=self._paused,
                following=self._view.following,
                typed=self._prompt.text,
            )
        )

    def _tell(self, message: str) -> None:
        """Say something for a moment."""
        self.query_one(StatusLine).tell(message)
        if self._notice is not None:
            self._notice.stop()
        self._notice = self.set_timer(_NOTICE_S, self._show_state)
