"""Seeing a drafter learn: every few minutes it drafts on the same two prompts, for real, and what came of it is kept.

The snapshots of a run are one recording, whose clock is the training's own. So the whole training can be replayed like
any session.
"""

from pathlib import Path

import msgspec
import torch

from peagle_cli.engine.protocol import LaneSetting, Message, Request
from peagle_cli.engine.recorded import header_of
from peagle_cli.engine.torch.drafter import DRAFTERS
from peagle_cli.engine.torch.engine import TorchEngine
from peagle_cli.engine.torch.target import Target
from peagle_cli.engine.torch.weights import Weights
from peagle_cli.errors import PeagleError
from peagle_cli.models.checkpoint import DrafterConfig
from peagle_cli.models.tokenizer import Tokenizer
from peagle_cli.recording.format import SUFFIX, Asked, End, Happened, Record, encode
from peagle_cli.trace.events import Event, Sampling
from peagle_cli.trace.metrics import Metrics
from peagle_cli.train.disk import save_bytes

PROMPTS = ("Write a Python function that checks whether a word is a palindrome.", "Why is the sky blue?")
DEPTH = 7
TOKENS = 48
CONTEXT = 256
"""What the target must have room for."""


class Snapshot(msgspec.Struct, frozen=True):
    """The replies to `PROMPTS`, as events."""

    step: int
    replies: tuple[tuple[Event, ...], ...]


class Snapshots:
    """The recording of a run's snapshots in `folder`, begun or gone on with."""

    def __init__(self, folder: Path, model: str, target: Target, tokenizer: Tokenizer) -> None:
        self._path = folder / f"snapshots{SUFFIX}"
        self._model = model
        self._target = target
        self._tokenizer = tokenizer

    def take(self, drafter_folder: Path, step: int, seconds: float) -> Snapshot:
        """Let the exported drafter draft, `step` steps and `seconds` seconds into the training.

        Raises `PeagleError` when the disk does not take the recording.
        """
        engine = self._open(drafter_folder)
        records: list[Record] = [] if self._path.exists() else [header_of(engine.info)]
        replies = []
        for prompt in PROMPTS:
            request = self._request(prompt, step, engine)
            events = tuple(engine.run(request))
            records += _records(request, events, seconds)
            replies.append(events)
        self._append(records)
        return Snapshot(step, tuple(replies))

    def forget_after(self, seconds: float) -> None:
        """Drop what was taken later than `seconds` into the training, and a snapshot that a kill cut short.

        Raises `PeagleError` when the disk does not take what remains; the recording is then as it was.
        """
        if not self._path.exists():
            return
        kept, whole = b"", b""
        for line in self._path.read_bytes().splitlines(keepends=True):
            try:
                fields = msgspec.json.decode(line, type=_Line)
            except msgspec.DecodeError:
                break
            if fields.at_s > seconds:
                break
            whole += line
            if fields.record in ("header", "end"):
                kept = whole
        if kept:
            save_bytes(kept, self._path)
        else:
            self._path.unlink()  # not even the header is whole: the next snapshot writes it

    def _open(self, drafter_folder: Path) -> TorchEngine:
        config = DrafterConfig.read(drafter_folder, self._target.config)
        weights = Weights(drafter_folder, self._target.device, self._target.dtype)
        with torch.inference_mode():
            drafter = DRAFTERS[config.method](config, weights, self._target, config.aux_layers)
        drafters, names = {config.method: drafter}, {config.method: drafter_folder.parent.name}
        return TorchEngine(self._model, self._target, self._tokenizer, drafters, names, config.aux_layers)

    @staticmethod
    def _request(prompt: str, step: int, engine: TorchEngine) -> Request:
        method = engine.info.methods[-1]
        lane = LaneSetting(f"step {step}", method, DEPTH)
        return Request((Message("user", prompt),), (lane,), Sampling(), TOKENS)

    def _append(self, records: list[Record]) -> None:
        try:
            with self._path.open("ab") as file:
                file.write(b"".join(encode(record) for record in records))
        except OSError as error:
            raise PeagleError(
                f"{self._path} could not be written: {error.strerror}.", "Make room and go on."
            ) from error


class _Line(msgspec.Struct):
    """What matters here of a line of a recording."""

    record: str
    at_s: float = 0.0


def _records(request: Request, events: tuple[Event, ...], at_s: float) -> list[Record]:
    lane = request.lanes[0].name
    figures = {lane: msgspec.to_builtins(Metrics(events).summary())}
    return [
        Asked(at_s, request.messages, (lane,)),
        *(Happened(at_s, event) for event in events),
        End(at_s, figures),
    ]
