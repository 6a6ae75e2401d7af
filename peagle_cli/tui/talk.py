"""One conversation with one engine, as the chat screen drives it: what was asked, what came back, what is going on.

Knows no Textual. The screen calls `take` with what the session reports and shows what it finds here.
"""

from peagle_cli.engine.contest import Contest
from peagle_cli.engine.lanes import why_shallow
from peagle_cli.engine.protocol import Command, EngineInfo, Message, Pause, Request, Resume, Step, Stop
from peagle_cli.engine.validate import check_steerable
from peagle_cli.errors import BadInputError, PeagleError
from peagle_cli.models.progress import Progress
from peagle_cli.trace.events import Changed, DraftBatch, Event, Failed, Finished, Started
from peagle_cli.trace.tally import Tally
from peagle_cli.tui.conversation import Conversation
from peagle_cli.tui.lesson import Lesson
from peagle_cli.tui.model import Kind, Transcript
from peagle_cli.tui.options import ChatOptions
from peagle_cli.tui.session import Idle, NotOpened, Opened, Phase, Refused, Session, Trouble, Update

PACES = (1.0, 2.0, 5.0, 10.0)
"""Steps per second in slow motion."""


class Talk:
    """`waiting` is the prompt that is asked as soon as the engine is ready, `loading` how far it has come with loading,
    `paused` whether it is held between two steps, `pace` how many steps it takes a second in slow motion, `tally` what
    all replies in the transcript came to, `lesson` what all replies so far can teach."""

    def __init__(self, options: ChatOptions) -> None:
        self.session = Session(options.spec, options.record, options.continues)
        self.conversation = Conversation(options)
        self.waiting: str | None = None
        self.loading: Progress | None = None
        self.paused = False
        self.pace: float | None = None
        self._due_s = 0.0  # when slow motion takes the next step
        self._stepping = False  # that step has been asked for, and has not come
        self.lesson = Lesson("this session")
        self.tally = Tally()
        self.transcript = _new_transcript()
        for turn in options.history:
            self._add_earlier(turn)
        if options.prompt is not None:
            self.ask(options.prompt)

    @property
    def phase(self) -> Phase:
        """What the engine is doing."""
        return self.session.phase

    def take(self, update: Update) -> None:
        """Take in what the engine reported. Raises `BadInputError` when no engine can be opened with these options."""
        match update:
            case Progress():
                self.loading = update
            case Opened(info=info):
                self.loading = None
                self.conversation.engine_opened(info)
                for note in info.notes:
                    self.transcript.add_note(note)
                if why := self._why_shallow(info):
                    self.transcript.add_note(why)
                self._ask_waiting()
            case NotOpened(error=BadInputError() as error):
                raise error
            case NotOpened(error=error) | Refused(error=error):
                self._add_error(error)
                if isinstance(update, Refused):
                    self.conversation.refused()
            case Trouble(sentence=sentence):
                self.transcript.add_note(sentence, Kind.ERROR)
            case Idle():
                pass
            case _:
                self._take_event(update)

    def ask(self, prompt: str) -> None:
        """Ask now, or as soon as the engine is ready. Raises `BadInputError` while another prompt is being served."""
        if self.phase is Phase.REPLYING:
            raise BadInputError("A reply is running: stop it first.")
        if self.waiting is not None:
            raise BadInputError("One prompt waits for the engine already.")
        self.waiting = prompt
        self.transcript.add_turn("you")
        self.transcript.add_prompt(prompt)
        self._ask_waiting()

    def retry(self) -> None:
        """Ask for another reply to the last prompt. Raises `BadInputError` where that cannot be."""
        if self.phase is not Phase.READY:
            raise BadInputError("The engine is not ready for it.")
        self._run(self.conversation.retry(), ", again")

    def contest(self) -> Contest:
        """A race on the last prompt. Raises `BadInputError` where that cannot be."""
        if self.phase is not Phase.READY:
            raise BadInputError("The engine is not ready for it.")
        return self.conversation.contest()

    def obey(self, commands: list[Command]) -> None:
        """Tell the running reply."""
        for command in commands:
            self.session.control(command)

    def stop(self) -> None:
        """End the reply after the step in progress."""
        self.session.control(Stop())

    def pause(self) -> None:
        """Hold the engine between two steps, or let it go on. Raises `BadInputError` where the engine cannot."""
        if self.phase is Phase.REPLYING and self.conversation.info is not None:
            check_steerable(self.conversation.info)
            self.paused = not self.paused
            self._hold()

    def step(self) -> None:
        """Take one step; pauses first, and raises as that does."""
        if not self.paused:
            self.pause()
        self.session.control(Step())

    def slow(self, by: int) -> None:
        """Go on slower or faster, from the slowest motion up to all that the engine can do.

        Raises `BadInputError` where the engine cannot be held.
        """
        if self.conversation.info is not None:
            check_steerable(self.conversation.info)
        choices = (*PACES, None)
        self.pace = choices[min(max(choices.index(self.pace) + by, 0), len(PACES))]
        self._hold()

    def tick(self, now_s: float) -> None:
        """Take the next step of slow motion once it is due; `now_s` is any clock's."""
        moving = self.phase is Phase.REPLYING and not self.paused and not self._stepping
        if self.pace and moving and now_s >= self._due_s:
            self._due_s = now_s + 1 / self.pace
            self._stepping = True
            self.session.control(Step())

    def _hold(self) -> None:
        """Hold the engine between steps where it is paused or in slow motion, or let it run."""
        self._stepping = False
        self.session.control(Pause() if self.paused or self.pace else Resume())

    def clear(self) -> None:
        """Begin a new conversation; a reply that runs is stopped and forgotten."""
        self.stop()
        self.waiting = None
        self.conversation.clear()
        self.tally = Tally()
        self.transcript = _new_transcript()

    def _add_earlier(self, turn: Message) -> None:
        """Show a turn of the conversation that is continued."""
        if turn.role == "user":
            self.transcript.add_turn("you")
            self.transcript.add_prompt(turn.content)
        else:
            self.transcript.add_turn("reply, as recorded")
            self.transcript.add_words(turn.content)

    def _ask_waiting(self) -> None:
        if self.waiting is not None and self.phase is Phase.READY:
            prompt, self.waiting = self.waiting, None
            self._run(self.conversation.ask(prompt))

    def _run(self, request: Request, again: str = "") -> None:
        assert self.conversation.info is not None
        self.transcript.add_turn(self.conversation.info.model + again)
        self.transcript.begin_reply(request.sampling)
        self.paused = False
        self.session.run(request)

    def _why_shallow(self, info: EngineInfo) -> str | None:
        """Why drafts are shallower than published, where nobody chose how deep they are."""
        conversation = self.conversation
        if conversation.wanted is None or conversation.auto or conversation.options.depth is not None:
            return None
        return why_shallow(info, conversation.wanted)

    def _take_event(self, event: Event) -> None:
        reply = self.conversation.reply
        if reply is None:  # it was cleared away
            return
        self.loading = None
        reply.add(event)
        self.tally.add(event)
        self.lesson.add(event)
        match event:
            case Started() if self.pace:
                self._hold()
            case DraftBatch():
                self._stepping = False
                self.transcript.add_batch(event)
                self.obey(self.conversation.follow(event))
            case Changed() if not self.conversation.auto:  # advice is followed too often to be marked
                self.transcript.add_change(event)
            case Finished():
                self.transcript.add_note(reply.closing())
            case Failed():
                self._add_error(event.error)

    def _add_error(self, error: PeagleError) -> None:
        self.transcript.add_note(error.message, Kind.ERROR)
        if error.hint:
            self.transcript.add_note(error.hint)


def _new_transcript() -> Transcript:
    transcript = Transcript()
    transcript.add_legend()
    return transcript
