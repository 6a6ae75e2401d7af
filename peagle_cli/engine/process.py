"""An engine in another process that looks like one in this: `Engine` of `protocol.py` over `wire.py`.

What breaks there becomes a `Failed` event here. The engine is gone then; starting again means opening another.
"""

from collections.abc import Generator, Iterator

from peagle_cli.engine import wire
from peagle_cli.engine.child import Child
from peagle_cli.engine.protocol import Command, EngineInfo, EngineSpec, Request, Stop
from peagle_cli.engine.validate import check_command, check_request
from peagle_cli.errors import EXIT_USAGE, BadInputError, PeagleError
from peagle_cli.models.progress import OnProgress, Progress
from peagle_cli.text import printable
from peagle_cli.trace.events import Event, Failed, Finished


class Opening:
    """An engine process that loads. `cancel` may be called from another thread than the one that waits."""

    def __init__(self, spec: EngineSpec) -> None:
        self._child = Child()
        self._child.send(wire.Open(spec))

    def wait(self, on_progress: OnProgress) -> "EngineProcess":
        """Wait until the engine can be used.

        Raises what the engine raised (`BadInputError` for a spec that cannot be opened), or `PeagleError` when its
        process ended, by `cancel` too.
        """
        try:
            while isinstance(message := self._child.receive(), Progress):
                on_progress(message)
            match message:
                case EngineInfo():
                    return EngineProcess(self._child, message)
                case wire.Refused():
                    raise _error(message)
                case wire.Broke():
                    raise PeagleError(
                        f"The engine could not be loaded: {printable(message.message)}.", self._child.log_says()
                    )
                case _:
                    raise PeagleError(self._child.epitaph(), self._child.log_says())
        except BaseException:
            self.cancel()
            raise

    def cancel(self) -> None:
        """End the loading at once."""
        self._child.close()


class EngineProcess:
    """An engine whose process has loaded it."""

    def __init__(self, child: Child, info: EngineInfo) -> None:
        self._child = child
        self._info = info
        self._last_id = wire.OPENING
        self._running: int | None = None

    @property
    def info(self) -> EngineInfo:
        """What was opened."""
        return self._info

    @property
    def pid(self) -> int:
        """The engine process's id."""
        return self._child.pid

    def run(self, request: Request) -> Generator[Event]:
        """Answer `request`, as `Engine.run` says. Without its process, all lanes fail."""
        check_request(request, self._info)  # also here: JSON has no words for some of what is refused
        self._last_id = request_id = self._last_id + 1
        self._running = request_id
        self._child.send(wire.Run(request_id, request))
        unfinished = {lane.name: None for lane in request.lanes}
        try:
            for event in self._received(request_id):
                if isinstance(event, Finished | Failed):
                    unfinished.pop(event.lane)
                yield self._with_log(event) if isinstance(event, Failed) else event
        except _EngineGoneError as gone:
            yield from (Failed(lane, gone.message, gone.hint) for lane in unfinished)
        finally:
            self._running = None
            # Does nothing to a request that has ended; one whose reader has gone is not worth finishing.
            self._child.send(wire.Obey(request_id, Stop()))

    def control(self, command: Command) -> None:
        """Obey `command` between two steps of the running request; without one it does nothing.

        Raises `BadInputError` for a command that no lane could obey: here, where its giver can be told.
        """
        check_command(command, self._info)
        if (request_id := self._running) is not None:
            self._child.send(wire.Obey(request_id, command))

    def close(self) -> None:
        """End the process."""
        self._child.close()

    def _received(self, request_id: int) -> Iterator[Event]:
        """The request's events as they arrive. Raises what the engine raised, or that it is gone."""
        while True:
            match self._child.receive():
                case wire.Happened(id=id, event=event) if id == request_id:
                    yield event
                case wire.Ended(id=id) if id == request_id:
                    return
                case wire.Refused(id=id) as refused if id == request_id:
                    raise _error(refused)
                case wire.Broke(message=what):
                    raise _EngineGoneError(f"The engine broke: {printable(what)}.", self._child.log_says())
                case None:
                    raise _EngineGoneError(self._child.epitaph(), self._child.log_says())

    def _with_log(self, failed: Failed) -> Failed:
        """A failure that the engine itself survived, and what its log says of it."""
        return Failed(failed.lane, failed.message, f"{failed.hint} {self._child.log_says()}")


class _EngineGoneError(PeagleError):
    """The engine process has ended, or is about to."""


def _error(refused: wire.Refused) -> PeagleError:
    kind = BadInputError if refused.exit_code == EXIT_USAGE else PeagleError
    return kind(refused.message, refused.hint)
