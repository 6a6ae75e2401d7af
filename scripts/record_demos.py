"""Records the bundled demos: real sessions with the default model, on the machine this runs on.

    python scripts/record_demos.py [NAME ...]

Each demo's prompts, lanes and changes stand in peagle_cli/demos/demos.toml, where the recordings go too, compressed. A
recording says itself on what hardware it was made. Run it on an otherwise idle machine: the times are kept as they are.
"""

import argparse
import gzip
import os
import sys
import tempfile
from pathlib import Path

from peagle_cli.engine.protocol import EngineSpec, LaneSetting, Message, Request, SetDepth, SetMethod
from peagle_cli.engine.recorded import RecordedEngine
from peagle_cli.engine.torch.engine import TorchEngine
from peagle_cli.recording import demos, sessions
from peagle_cli.recording.demos import Ask, Script
from peagle_cli.recording.format import SUFFIX
from peagle_cli.recording.overview import overview
from peagle_cli.trace.events import METHOD_NAMES, DraftBatch, Event, Method, Sampling
from peagle_cli.trace.rounds import name_of

CANDIDATES = 3
MAX_TOKENS = 256


def main() -> None:
    """Record the demos that are named, or all."""
    parser = argparse.ArgumentParser(description="Record the bundled demos.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="a name in demos.toml; default: all")
    parser.add_argument("--to", type=Path, default=demos.folder(), help="folder to write to; default: the package's")
    arguments = parser.parse_args()
    scripts = demos.scripts()
    if unknown := set(arguments.names) - set(scripts):
        parser.error(f"no such demo: {', '.join(sorted(unknown))}")
    engine = TorchEngine.open(EngineSpec())
    for name in arguments.names or scripts:
        path = arguments.to / f"{name}{SUFFIX}.gz"
        path.write_bytes(gzip.compress(_record(engine, scripts[name]), mtime=0))
        seen = overview(path)
        size = path.stat().st_size
        sys.stdout.write(f"{name}: {seen.tokens} tokens, {seen.tokens_per_second or 0:.1f} tokens/s, {size} bytes\n")
    engine.close()


def _record(engine: TorchEngine, script: Script) -> bytes:
    """The recording's content."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PEAGLE_DATA_DIR"] = folder
        recorded = RecordedEngine(engine, sys.exit)
        for ask in script.ask:
            _answer(recorded, ask)
        return sessions.find(sessions.LAST).read_bytes()


def _answer(engine: RecordedEngine, ask: Ask) -> None:
    """Run one request, with its changes at their steps."""
    lanes = [_lane(text) for text in ask.lanes]
    request = Request(
        messages=(Message("user", ask.prompt),),
        lanes=tuple(lanes),
        sampling=Sampling(temperature=ask.temperature, seed=ask.seed),
        max_tokens=MAX_TOKENS,
        candidates=CANDIDATES,
    )
    for event in engine.run(request):
        _change(engine, ask, lanes[0].name, event)


def _change(engine: RecordedEngine, ask: Ask, lane: str, event: Event) -> None:
    """After the step before it, ask for a change; the engine obeys before its next step."""
    for change in ask.changes:
        if isinstance(event, DraftBatch) and event.step == change.step - 1:
            if change.depth is not None:
                engine.control(SetDepth(lane, change.depth))
            if change.method is not None:
                engine.control(SetMethod(lane, change.method))


def _lane(text: str) -> LaneSetting:
    """A lane written "method depth"."""
    name, depth = text.split()
    method: Method = next(method for method in METHOD_NAMES if method == name)
    return LaneSetting(name_of((method, int(depth))), method, int(depth))


if __name__ == "__main__":
    main()
