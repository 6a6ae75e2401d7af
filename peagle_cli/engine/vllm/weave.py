"""What the tap and the stream tell of one request, woven into one course of batches.

The stream is what cannot be lost: each of its tokens comes out, whether the tap told of its step or not. The tap says
how they came about. Pure: knows no socket and no clock.
"""

from collections import deque
from collections.abc import Iterator

from peagle_cli.engine.vllm import wire
from peagle_cli.engine.vllm.batches import BatchMaker, Opinion, Piece
from peagle_cli.trace.events import DraftBatch


class Weaver:
    """Takes what either tells, in the order in which it comes, and gives the batches that are certain by then.

    `tapped` says that a tap tells at all; `depth` is the server's drafts per step, for tokens of which only the stream
    told. With `wants_opinions` a batch waits for what the stream says of its tokens. `began_s` is when the request was
    sent.
    """

    def __init__(self, maker: BatchMaker, *, tapped: bool, depth: int, wants_opinions: bool, began_s: float) -> None:
        self._maker = maker
        self._tapped = tapped
        self._depth = depth
        self._wants_opinions = wants_opinions
        self._base = maker.position
        self._base_s = maker.clock_s
        self._steps: deque[tuple[wire.Step, wire.Work]] = deque()
        self._pieces: deque[Piece] = deque()  # whose tokens have not all come out
        self._opinions: list[Opinion] = []
        self._streamed = 0
        self._last_s = began_s
        self._complete = False  # the tap has told of the last step
        self._silent = False  # the tap has not told what it should have

    @property
    def waits(self) -> bool:
        """Whether the tap is behind the stream."""
        return self._tapped and not self._silent and (self._streamed > self._done or bool(self._steps))

    @property
    def complete(self) -> bool:
        """Whether nothing is missing, once the stream has ended."""
        return not self.waits and (self._complete or not self._tapped)

    @property
    def prefilled(self) -> int | None:
        """Tokens of context that had to be processed; None until it is known, or known not to be told."""
        first = next((work for _, work in self._steps if work.sampled), None)
        if first is not None:
            return self._maker.prefilled + first.prefilled
        return None if self._tapped and not self._silent else 0

    def told(self, step: wire.Step, work: wire.Work) -> None:
        """The tap told of a step."""
        self._silent = False
        self._complete = self._complete or work.finished
        if work.sampled:
            self._steps.append((step, work))
        else:
            self._maker.prefill(step, work)

    def streamed(self, piece: Piece) -> None:
        """The stream brought a piece."""
        self._streamed += piece.size
        self._opinions += piece.opinions
        if piece.size:
            self._pieces.append(piece)

    def batches(self) -> Iterator[DraftBatch]:
        """The batches that have become certain."""
        self._drop_pieces()
        if not self._tapped or self._silent:
            yield from self._read_alone(self._streamed)
            return
        while self._steps:
            step, work = self._steps[0]
            gap = work.position > self._done
            needed = work.position + work.emitted if self._wants_opinions else work.position if gap else 0
            if self._streamed < needed:
                return
            self._steps.popleft()
            if work.position < self._done or not work.emitted:
                continue  # the stream was read alone meanwhile
            yield from self._read_alone(work.position)
            opinions = self._opinions[work.position : work.position + work.emitted] if self._wants_opinions else ()
            yield self._maker.tapped(step, work, self._base_s, opinions)
            self._drop_pieces()

    def give_up(self) -> None:
        """Wait for the tap no longer: until it tells of a step again, the stream is read alone."""
        self._steps.clear()
        self._silent = self._complete = True

    @property
    def _done(self) -> int:
        return self._maker.position - self._base

    def _read_alone(self, until: int) -> Iterator[DraftBatch]:
        while self._pieces and self._done < until:
            piece = self._pieces.popleft()
            yield from self._maker.untapped(piece, self._depth, self._last_s)
            self._last_s = piece.at_s

    def _drop_pieces(self) -> None:
        """Forget the pieces whose tokens have come out; of the one that has partly, keep the rest."""
        start = self._streamed - sum(piece.size for piece in self._pieces)
        while self._pieces and start + self._pieces[0].size <= self._done:
            piece = self._pieces.popleft()
            start += piece.size
            self._last_s = piece.at_s
        if self._pieces and start < self._done:
            piece = self._pieces[0]
            cut = self._done - start
            assert piece.ids is not None, "the tap knows ids, so the stream does"
            self._pieces[0] = Piece(piece.ids[cut:], "", piece.at_s, piece.opinions[cut:])
