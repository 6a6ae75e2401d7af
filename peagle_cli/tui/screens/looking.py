"""What the chat can look at: tokens, the timeline, the figures, rejected drafts."""

from typing import get_args

from textual import on

from peagle_cli.tui.model import Rejected
from peagle_cli.tui.screens.figures import FiguresScreen, Place, subjects_of
from peagle_cli.tui.screens.words import WordsScreen
from peagle_cli.tui.widgets.course import CourseStrip
from peagle_cli.tui.widgets.inspector import Inspector
from peagle_cli.tui.widgets.transcript import TranscriptView

_REJECTED: dict[Rejected, str] = {
    "first": "Showing the drafts that were rejected.",
    "all": "Showing the drafts that were rejected, and those discarded behind them.",
    "none": "Showing the reply alone.",
}


class LookingScreen(WordsScreen):
    """The actions that show more of what happened, without changing what happens."""

    @on(CourseStrip.Moved)
    def _looked_at(self, message: CourseStrip.Moved) -> None:
        self._view.show_batches(message.batches)

    @on(TranscriptView.Pressed)
    def _pressed(self, message: TranscriptView.Pressed) -> None:
        self.query_one(Inspector).inspect(message.view, message.spot)

    def action_inspect(self) -> None:
        """Look at a token: what drafter and target thought of it, and why it was kept or not."""
        if self.reading:
            self.action_view()
        if self._talk.transcript.batches:
            self.query_one(Inspector).inspect(self._view)
        else:
            self._tell("There is no token to look at yet: ask something first.")

    def action_timeline(self) -> None:
        """Go along the timeline."""
        self._course.focus()

    def action_figures(self) -> None:
        """The timeline and the figures, of this reply and of the conversation."""
        talk = self._talk
        screen = FiguresScreen(lambda: subjects_of(talk.tally, talk.conversation.reply), lambda: talk.session.busy)
        self.app.push_screen(screen, self._go_to)

    def _go_to(self, place: Place | None) -> None:
        """Show a batch that was chosen on the page of figures."""
        if place is not None:
            self._course.look_at(place.batch)
            self._view.show_batches(range(place.batch, place.batch + 1))

    def action_rejected(self) -> None:
        """Show the rejected drafts, also what was drafted behind them, or neither."""
        choices = get_args(Rejected)
        self._view.rejected = choices[(choices.index(self._view.rejected) + 1) % len(choices)]
        self._tell(_REJECTED[self._view.rejected])

    def action_page(self, direction: int) -> None:
        """Leaf through the transcript from wherever the focus is."""
        (self._view.scroll_page_up if direction < 0 else self._view.scroll_page_down)()
