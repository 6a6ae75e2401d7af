"""One line between the transcript and the prompt: what is going on, and what can be done about it."""

from dataclasses import dataclass
from functools import partial

from textual.timer import Timer

from peagle_cli.models.progress import Progress
from peagle_cli.text import one_line
from peagle_cli.tui.keys import KeyNames, key_of
from peagle_cli.tui.session import Phase
from peagle_cli.tui.widgets.panel import Panel, Pieces, bar

NOTICE_S = 3.0
_BAR = 20
_MEGABYTE = 1e6


@dataclass(frozen=True)
class Situation:
    """What the line tells about: `waiting` is a prompt that is asked when the engine is ready, `typed` the prompt's
    text, `following` whether the transcript's end is in view, `pace` the steps per second of slow motion."""

    phase: Phase
    loading: Progress | None = None
    waiting: bool = False
    paused: bool = False
    pace: float | None = None
    following: bool = True
    typed: str = ""


class StatusLine(Panel):
    """Left a message, right a hint. Always there, so that nothing moves when it speaks."""

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self._status = ("", "", "label")
        self._notice = ""
        self._forgetting: Timer | None = None

    def describe(self, situation: Situation) -> None:
        """Say what is going on, unless there is a notice to be read."""
        if (now := status(situation, partial(key_of, self.app))) != self._status:
            self._status = now
            self.redraw()

    def tell(self, notice: str) -> None:
        """Say something in particular, for a moment."""
        if self._forgetting is not None:
            self._forgetting.stop()
        self._forgetting = self.set_timer(NOTICE_S, self._forget)
        self._notice = notice
        self.redraw()

    def draw(self) -> list[Pieces]:
        """Draw it."""
        message, hint, style = (self._notice, "", "correction") if self._notice else self._status
        return [self.spread([self.ink(message, style)], [self.ink(f"  {hint}", "label")])]

    def _forget(self) -> None:
        self._notice = ""
        self.redraw()


def status(now: Situation, key: KeyNames) -> tuple[str, str, str]:
    """Message, hint and the message's style; `key` names the keys."""
    if now.typed.startswith("/") and "\n" not in now.typed:
        choose = f"{key('prompt.previous')} {key('prompt.next')} choose   {key('prompt.complete')} completes"
        return (
            "a command",
            f"{choose}   {key('prompt.send')} does it   {key('prompt.close-completions')} closes",
            "value",
        )
    return _doing(now, key)


def _doing(now: Situation, key: KeyNames) -> tuple[str, str, str]:
    """What the engine does."""
    back = "" if now.following else f"{key('watch.bottom')}: back to the latest"
    if now.phase is Phase.LOADING or (now.loading and now.phase is Phase.REPLYING):
        stage = progress_text(now.loading) if now.loading else "starting the engine …"
        hint = "asked when ready" if now.waiting else "you can write meanwhile"
        return f"◌ {stage}", f"{key('chat.stop')} stops" if now.phase is Phase.REPLYING else hint, "value"
    match now.phase:
        case Phase.BROKEN:
            return "✗ the engine is not running", f"{key('chat.restart')} starts it again", "rejected"
        case Phase.REPLYING if now.paused:
            return "‖ paused", f"{key('watch.step')} takes a step, {key('watch.pause')} goes on", "correction"
        case Phase.REPLYING:
            slow = f" in slow motion, {now.pace:g}/s" if now.pace else ""
            hint = f"{key('watch.faster')} faster, {key('watch.slower')} slower" if now.pace else ""
            return f"● replying{slow}", back or hint, "accepted"
        case Phase.READY:
            return "○ ready", back, "label"


def progress_text(progress: Progress) -> str:
    """A stage of loading as one line, with a bar where its size is known."""
    stage = one_line(progress.stage)
    if not progress.total:
        return f"{stage} …"
    scale, unit = (_MEGABYTE, " MB") if progress.unit == "bytes" else (1, "")
    total = f"{progress.total / scale:.0f}"
    amount = f"{progress.done / scale:>{len(total)}.0f} of {total}{unit}"
    return f"{stage}  {bar(progress.done / progress.total, _BAR)}  {amount}"
