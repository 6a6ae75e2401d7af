"""Commands to a running request, carried out between two steps."""

from collections.abc import Iterator, Mapping, Sequence
from queue import Empty, SimpleQueue

from peagle_cli.engine.protocol import Command, Pause, Resume, SetDepth, SetMethod, Step, Stop
from peagle_cli.engine.torch.decode import Lane
from peagle_cli.trace.events import Changed, Method


class Controls:
    """The commands of one request. Any thread may `put`; the one that decodes obeys."""

    def __init__(self, max_depths: Mapping[Method, int]) -> None:
        self.stopped = False
        self._max_depths = max_depths
        self._queue: SimpleQueue[Command] = SimpleQueue()
        self._paused = False

    def put(self, command: Command) -> None:
        """Have `command` carried out before the next step."""
        self._queue.put(command)

    def obey(self, lanes: Sequence[Lane]) -> Iterator[Changed]:
        """Carry out what has been asked for, and while paused what will be, until a step may be taken or `stopped`."""
        by_name = {lane.name: lane for lane in lanes}
        while not self.stopped:
            try:
                command = self._queue.get(block=self._paused)
            except Empty:
                return
            match command:
                case SetDepth(name, depth) if lane := by_name.get(name):
                    yield from self._set(lane, lane.method, depth)
                case SetMethod(name, method) if lane := by_name.get(name):
                    yield from self._set(lane, method, lane.depth)
                case Pause():
                    self._paused = True
                case Resume():
                    self._paused = False
                case Stop():
                    self.stopped = True
                case Step() if self._paused:
                    return

    def _set(self, lane: Lane, method: Method, depth: int) -> Iterator[Changed]:
        """Change the lane, within what the method's drafter can; tells what is now different."""
        depth = min(depth, self._max_depths.get(method, depth))
        if method != lane.method:
            old_method, lane.method = lane.method, method
            yield Changed(lane.name, "method", old_method, method)
        if depth != lane.depth:
            old_depth, lane.depth = lane.depth, depth
            yield Changed(lane.name, "depth", old_depth, depth)
