"""What the chat can do with a reply: draft otherwise, hold it, slow it down, stop it, ask for another."""

from collections.abc import Callable

from peagle_cli.engine.protocol import Command, LaneSetting
from peagle_cli.errors import BadInputError
from peagle_cli.trace.events import Method
from peagle_cli.tui.screens.race import RaceScreen
from peagle_cli.tui.screens.talking import TalkScreen


class SteeringScreen(TalkScreen):
    """The actions that steer the engine."""

    # Depth and method

    def action_deepen(self, by: int) -> None:
        """Draft deeper or shallower by this much, from the next step on."""
        self._change(lambda: self._talk.conversation.deepen(by))

    def action_set_depth(self, depth: str) -> None:
        """Draft so many tokens per step, from the next step on."""
        if depth.isdecimal():
            self._change(lambda: self._talk.conversation.set_depth(int(depth)))
        else:
            self._tell("The depth is a number of tokens.")

    def action_next_method(self) -> None:
        """Draft by the next of the engine's methods, from the next step on."""
        self._change(self._talk.conversation.next_method)

    def action_set_method(self, method: Method) -> None:
        """Draft by this method, from the next step on."""
        self._change(lambda: self._talk.conversation.set_method(method))

    def action_auto(self) -> None:
        """Let the depth follow the advice from now on, or no longer."""
        self._change(self._talk.conversation.toggle_auto)

    def _change(self, change: Callable[[], list[Command]]) -> None:
        try:
            self._talk.obey(change())
        except BadInputError as error:
            self._tell(str(error))
        else:
            self._show_setting()

    def action_race(self) -> None:
        """Race all drafters on the last prompt, and adopt the winner's setting if that is wanted."""
        try:
            contest = self._talk.contest()
        except BadInputError as error:
            self._tell(str(error))
        else:
            self.app.push_screen(RaceScreen(self._talk.session, lambda info: contest, hosted=True), self._raced)

    def _raced(self, setting: LaneSetting | None) -> None:
        self._follow_phase()
        if setting is not None:
            self._change(lambda: self._talk.conversation.adopt(setting))

    # Pace and end

    def action_pause(self) -> None:
        """Hold the engine between two steps, or let it go on."""
        self._pace(self._talk.pause)

    def action_step(self) -> None:
        """Take one step; pauses first."""
        self._pace(self._talk.step)

    def action_slower(self) -> None:
        """Go on slower, down to a step a second."""
        self._pace(lambda: self._slow(-1))

    def action_faster(self) -> None:
        """Go on faster, up to all that the engine can do."""
        self._pace(lambda: self._slow(1))

    def _slow(self, by: int) -> None:
        self._talk.slow(by)
        pace = self._talk.pace
        told = f"Slow motion: {pace:g} step{'s' * (pace != 1)} a second." if pace else "As fast as the engine goes."
        self._tell(told)

    def _pace(self, change: Callable[[], None]) -> None:
        try:
            change()
        except BadInputError as error:
            self._tell(str(error))
        else:
            self._show_state()

    def action_stop(self) -> None:
        """End the reply after the step in progress, and go back to the prompt; or look along the timeline no longer."""
        if self._course.has_focus:
            self._course.look_at(None)
            self._view.show_batches(range(0))
            self._view.action_follow()
        else:
            self._talk.stop()
        self._prompt.focus()

    def action_retry(self) -> None:
        """Another reply to the last prompt, in place of the one it got."""
        try:
            self._talk.retry()
        except BadInputError as error:
            self._tell(str(error))
        else:
            self._view.update()
            self._follow_phase()
