"""The chat: one conversation with one engine, every draft batch as it is verified."""

from collections.abc import Iterable
from time import monotonic
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widgets import Static

from peagle_cli import locations, themes
from peagle_cli.errors import EXIT_INTERRUPTED, BadInputError
from peagle_cli.tui.commands import parse
from peagle_cli.tui.history import PromptHistory
from peagle_cli.tui.keys import key_of
from peagle_cli.tui.options import ChatOptions
from peagle_cli.tui.screens.frames import FRAMES_PER_PLOT, FRAMES_PER_S
from peagle_cli.tui.screens.help import PARTS, HelpScreen
from peagle_cli.tui.screens.looking import LookingScreen
from peagle_cli.tui.screens.steering import SteeringScreen
from peagle_cli.tui.screens.tour import is_new
from peagle_cli.tui.session import Phase, Update
from peagle_cli.tui.talk import Talk
from peagle_cli.tui.widgets.answer import AnswerView
from peagle_cli.tui.widgets.completions import Completions
from peagle_cli.tui.widgets.course import CourseStrip
from peagle_cli.tui.widgets.figures import Figures
from peagle_cli.tui.widgets.header import ChatHeader
from peagle_cli.tui.widgets.inspector import Inspector
from peagle_cli.tui.widgets.keyline import KeyLine
from peagle_cli.tui.widgets.prompt import Prompt
from peagle_cli.tui.widgets.search import SearchLine
from peagle_cli.tui.widgets.side import Side
from peagle_cli.tui.widgets.status import NOTICE_S, StatusLine
from peagle_cli.tui.widgets.transcript import DEPTH, TranscriptView


class ChatScreen(LookingScreen, SteeringScreen):
    """Reads the session's updates thirty times a second while there are any to come, and draws what they changed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+o", "screen.inspect", "inspect", tooltip="Why each token was kept or not", id="chat.inspect"),
        Binding("f2", "screen.next_method", "method", tooltip="Next method", id="chat.method"),
        Binding("f3", "screen.deepen(-1)", "shallower", tooltip="Draft shallower", id="chat.shallower", group=DEPTH),
        Binding("f4", "screen.deepen(1)", "deeper", tooltip="Draft deeper", id="chat.deeper", group=DEPTH),
        Binding("f5", "screen.pause", "pause", tooltip="Pause, go on", id="chat.pause"),
        # Priority: the prompt's own f6 and f7 select text.
        Binding("f6", "screen.race", "race", tooltip="Race all drafters", priority=True, id="chat.race"),
        Binding("f7", "screen.auto", "Depth by the advice", show=False, priority=True, id="chat.auto"),
        Binding("f8", "screen.step", "step", tooltip="Take one step", id="chat.step"),
        Binding("f9", "screen.rejected", "rejected", tooltip="Show more, fewer rejected drafts", id="chat.rejected"),
        Binding("f10", "figures", "figures", tooltip="Timeline and figures", id="chat.figures"),
        Binding("escape", "stop", "stop", key_display="esc", tooltip="Stop the reply", id="chat.stop"),
        # Priority: in the prompt it would delete a word.
        Binding("ctrl+f", "search", "Search the transcript", show=False, priority=True, id="chat.search"),
        Binding("ctrl+r", "restart", "restart", tooltip="Start the engine again", id="chat.restart"),
        Binding("ctrl+c", "interrupt", "Stop; again: leave", show=False, priority=True, id="chat.interrupt"),
        Binding("ctrl+d", "leave", "Leave", show=False, id="chat.leave"),
        Binding("pageup", "page(-1)", "A page up", show=False, id="chat.page-up"),
        Binding("pagedown", "page(1)", "A page down", show=False, id="chat.page-down"),
        Binding("f1", "help", "help", tooltip="This page", id="chat.help"),
    ]

    def __init__(self, options: ChatOptions) -> None:
        super().__init__(Talk(options))
        self._history = PromptHistory(locations.prompts() if options.record else None)
        self._new_here = is_new()
        self._phase: Phase | None = None  # as it was when last shown
        self._may_leave_until = 0.0
        self._news = 0  # the frame in which the engine last reported something

    @property
    def deepest(self) -> int:
        """How deep can be drafted at most."""
        return self._talk.conversation.deepest

    @property
    def arguments(self) -> dict[str, list[str]]:
        """What the arguments of commands can be that only the screen knows, by command."""
        return {"depth": [str(depth) for depth in range(self.deepest + 1)], "theme": list(themes.available())}

    @property
    def every_binding(self) -> list[BindingType]:
        """All that keys do here, whatever has the focus."""
        return [binding for part in (self._own_bindings, *PARTS.values()) for binding in part]

    @property
    def _own_bindings(self) -> list[BindingType]:
        parts = (type(self), TranscriptView, Prompt, type(self.app))
        return [binding for part in parts for binding in part.BINDINGS]

    def compose(self) -> ComposeResult:
        """Header, transcript and figures side by side, status, prompt, keys."""
        yield ChatHeader(id="header")
        yield Figures(id="strip")
        with Horizontal(id="body"):
            yield TranscriptView(id="transcript")
            yield AnswerView(id="answer")
            yield Side(id="side")
            yield Inspector(id="inspector")
            yield Completions(id="completions")
        yield CourseStrip(id="course")
        yield StatusLine(id="status")
        yield SearchLine(id="search")
        with Horizontal(id="entry"):
            yield Static("›", classes="caret")
            yield Prompt(self._history, id="prompt")
        yield KeyLine()

    def on_mount(self) -> None:
        """Paint first, then open the engine."""
        self._view.show(self._talk.transcript)
        self._timer = self.set_interval(1 / FRAMES_PER_S, self._drain, pause=True)
        self._prompt.focus()
        if self._talk.waiting is not None:
            self._prompt.remember(self._talk.waiting)
        self._show_state()
        self.call_after_refresh(self.action_restart)
        if self._new_here and self._talk.waiting is None and not self._talk.conversation.exchanges:
            self.call_after_refresh(self.action_tour)
            self._new_here = False

    def on_unmount(self) -> None:
        """Leave no engine behind."""
        self._talk.session.close()

    # What arrives

    def _drain(self) -> None:
        self._frame += 1
        self._talk.tick(monotonic())
        updates = self._talk.session.poll()
        if updates:
            self._news = self._frame
        if self._frame - self._news <= FRAMES_PER_PLOT:  # by then all that tells of the latest news has been drawn
            self.receive(updates)
        if not self._talk.session.busy:
            self._timer.pause()

    def receive(self, updates: Iterable[Update]) -> None:
        """Take in what the engine reported, and draw once."""
        updates = list(updates)
        try:
            for update in updates:
                self._talk.take(update)
        except BadInputError as error:
            self.app.exit(error)
        if updates:
            self._view.update()
            self.grow_answer()
        self._show_reply()
        self._follow_phase()

    def _follow_phase(self) -> None:
        """Bring to the new phase what depends on it, the focus too: on the transcript while a reply runs, since single
        letters act there, on the prompt otherwise; but never away from where someone writes or reads."""
        before, self._phase = self._phase, self._talk.phase
        if self._talk.session.busy:
            self._show_state()
        if self._phase is before:
            return
        if self._phase is Phase.REPLYING:
            self._timer.resume()
            self._view.action_follow()
            if not self._prompt.text:
                self._view.focus()
        elif self._view.has_focus and self._view.following:
            self._prompt.focus()
        if before is Phase.REPLYING and self._new_here:
            self._new_here = False
            self._tell("New here? /tour explains it with the steps that you just saw.")
        if self._history.trouble:
            self._tell(self._history.trouble)
        self._side.set_positions(self.deepest)
        self._prompt.known = self.arguments
        self._show_setting()
        self._show_state()
        self.refresh_bindings()

    # What the user asks for

    @on(Prompt.Sent)
    def _sent(self, message: Prompt.Sent) -> None:
        self._prompt.remember(message.text)
        try:
            if message.text.startswith("/"):
                command, argument = parse(message.text)
                self.call_next(self.run_action, command.call(argument))
            else:
                self._talk.ask(message.text)
                self._view.update()
                self._view.action_follow()
                self._follow_phase()
        except BadInputError as error:
            self._prompt.replace_text(message.text)
            self._tell(str(error))

    # Actions: by key, slash command and palette

    def action_clear(self) -> None:
        """Begin a new conversation."""
        self._talk.clear()
        self.show_tokens()
        self._view.show(self._talk.transcript)
        self._show_reply(all_of_it=True)
        self._show_state()

    def action_restart(self) -> None:
        """Open the engine, again if need be."""
        self._talk.session.open(self._talk.conversation.wanted)
        self._timer.resume()
        self._follow_phase()

    def action_theme(self, name: str = "") -> None:
        """Wear a theme, or choose one."""
        self.app.call_next(self.app.run_action, f"theme({name!r})" if name else "theme")

    def action_help(self) -> None:
        """What the screen shows, and its keys."""
        self.app.push_screen(HelpScreen({"": self._own_bindings, **PARTS}), self._helped)

    def _helped(self, tour: bool | None) -> None:
        if tour:
            self.action_tour()

    def action_write(self) -> None:
        """Go to the prompt."""
        self._prompt.focus()

    def action_interrupt(self) -> None:
        """Copy what is selected; or stop the reply; or leave, when asked twice."""
        if selected := self.get_selected_text() or self._prompt.selected_text:
            self.app.copy_to_clipboard(selected)
            self.clear_selection()
        elif self._talk.phase is Phase.REPLYING:
            self.action_stop()
        elif monotonic() < self._may_leave_until:
            self.app.exit(EXIT_INTERRUPTED)
        else:
            self._tell(f"Press {key_of(self.app, 'chat.interrupt')} again to leave.")
            self._may_leave_until = monotonic() + NOTICE_S

    def action_leave(self) -> None:
        """End the chat."""
        self.app.exit(0)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Dim the keys that would do nothing now; offer a restart only where it helps."""
        if action == "stop" and isinstance(self.focused, CourseStrip):
            return True
        if action in ("pause", "step", "stop"):
            return True if self._talk.phase is Phase.REPLYING else None
        if action == "race":
            return True if self._talk.phase is Phase.READY else None
        if action == "restart":
            return self._talk.phase is Phase.BROKEN
        if action in ("next_match", "end_search"):
            return self.searching
        return True
