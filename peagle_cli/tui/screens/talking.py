"""A screen on a conversation: its parts, and what they show. What the user can ask for is up to the subclasses."""

from textual import on
from textual.screen import Screen
from textual.widgets import TextArea

from peagle_cli.tui.screens.frames import FRAMES_PER_BATCHES, FRAMES_PER_FIGURES, FRAMES_PER_PLOT, HEIGHTS, WIDTHS
from peagle_cli.tui.talk import Talk
from peagle_cli.tui.widgets.course import CourseStrip
from peagle_cli.tui.widgets.figures import Figures
from peagle_cli.tui.widgets.header import ChatHeader
from peagle_cli.tui.widgets.prompt import Prompt
from peagle_cli.tui.widgets.side import Side
from peagle_cli.tui.widgets.status import Situation, StatusLine
from peagle_cli.tui.widgets.transcript import TranscriptView


class TalkScreen(Screen[None]):
    """A screen with a header, a transcript, figures, a timeline, a status line and a prompt. `_frame` counts how often
    it has been drawn."""

    def __init__(self, talk: Talk) -> None:
        super().__init__()
        self.HORIZONTAL_BREAKPOINTS = WIDTHS
        self.VERTICAL_BREAKPOINTS = HEIGHTS
        self._talk = talk
        self._frame = 0

    def _follow_phase(self) -> None:
        """Bring to the conversation's phase what depends on it."""
        raise NotImplementedError

    @property
    def _view(self) -> TranscriptView:
        return self.query_one(TranscriptView)

    @property
    def _prompt(self) -> Prompt:
        return self.query_one(Prompt)

    @property
    def _side(self) -> Side:
        return self.query_one(Side)

    @property
    def _course(self) -> CourseStrip:
        return self.query_one(CourseStrip)

    def _show_reply(self, all_of_it: bool = False) -> None:
        """Show the reply's figures, each at its own pace; all of them when the reply has ended."""
        due = all_of_it or not self._talk.session.busy
        reply = self._talk.conversation.reply
        if due or self._frame % FRAMES_PER_BATCHES == 0:
            self._side.show_batches(reply)
        if due or self._frame % FRAMES_PER_FIGURES == 0:
            self._side.show_figures(reply)
            self.query_one("#strip", Figures).show(reply)
            self._course.show_course(self._talk.tally.course)
        if due or self._frame % FRAMES_PER_PLOT == 0:
            self._side.show_course(reply)

    def _show_setting(self) -> None:
        conversation = self._talk.conversation
        self.query_one(ChatHeader).describe(
            conversation.info,
            conversation.wanted,
            auto=conversation.auto,
            recording=self._talk.session.recording,
        )

    @on(TranscriptView.Followed)
    @on(TextArea.Changed)
    def _show_state(self) -> None:
        """Say in the status line what is going on."""
        talk = self._talk
        self.query_one(StatusLine).describe(
            Situation(
                talk.phase,
                loading=talk.loading,
                waiting=talk.waiting is not None,
                paused=talk.paused,
                pace=talk.pace,
                following=self._view.following,
                typed=self._prompt.text,
            )
        )

    def _tell(self, message: str) -> None:
        """Say something for a moment."""
        self.query_one(StatusLine).tell(message)
