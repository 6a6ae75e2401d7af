"""The column beside the transcript: figures, acceptance, the speed's course, the latest batches."""

from textual.app import ComposeResult
from textual.containers import Vertical

from peagle_cli.tui.conversation import Reply
from peagle_cli.tui.widgets.acceptance import Acceptance
from peagle_cli.tui.widgets.batches import Batches
from peagle_cli.tui.widgets.figures import Figures
from peagle_cli.tui.widgets.speed import SpeedPlot


class Side(Vertical):
    """Shows one reply. Each of the three can be shown at a pace of its own."""

    def compose(self) -> ComposeResult:
        """The panels, in the order in which they matter."""
        yield Figures(id="figures")
        yield Acceptance(id="acceptance")
        yield SpeedPlot(id="speed")
        yield Batches(id="batches")

    def set_positions(self, deepest: int) -> None:
        """Make room for drafts of up to `deepest` tokens."""
        self.query_one(Acceptance).set_positions(deepest)
        self.query_one(Batches).set_positions(deepest)

    def show_batches(self, reply: Reply | None) -> None:
        """Show the latest batches."""
        self.query_one(Batches).show(reply)

    def show_figures(self, reply: Reply | None) -> None:
        """Show the figures as of now."""
        self.query_one(Figures).show(reply)
        self.query_one(Acceptance).show(reply)

    def show_course(self, reply: Reply | None) -> None:
        """Show the speed's course as of now."""
        self.query_one(SpeedPlot).show(reply)
