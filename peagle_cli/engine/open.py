"""Where engines are opened: the only place that knows which kind a spec asks for."""

from peagle_cli.engine.process import EngineProcess, Opening
from peagle_cli.engine.protocol import EngineSpec
from peagle_cli.models.progress import OnProgress


def start_engine(spec: EngineSpec) -> Opening:
    """Begin to load an engine: `wait` for it in a thread, and `cancel` from any other."""
    return Opening(spec)


def open_engine(spec: EngineSpec, on_progress: OnProgress) -> EngineProcess:
    """Load an engine and wait for it. Raises `BadInputError` or `PeagleError` when it cannot be opened."""
    return start_engine(spec).wait(on_progress)
