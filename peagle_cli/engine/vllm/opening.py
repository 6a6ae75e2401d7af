"""Opening vLLM as an engine: on servers of our own, or attached to one that runs."""

from peagle_cli.engine.protocol import EngineSpec
from peagle_cli.engine.vllm.attached import AttachedServer
from peagle_cli.engine.vllm.client import VllmEngine
from peagle_cli.engine.vllm.own import OwnServers
from peagle_cli.models.progress import OnProgress


class VllmOpening:
    """An engine that opens. `cancel` may be called from another thread than the one that waits."""

    def __init__(self, spec: EngineSpec) -> None:
        self._servers = AttachedServer(spec) if "://" in spec.engine else OwnServers(spec)

    def wait(self, on_progress: OnProgress) -> VllmEngine:
        """Open it. Raises `BadInputError` or `PeagleError` when it cannot be, by `cancel` too."""
        try:
            self._servers.open(on_progress)
        except BaseException:
            self._servers.close()
            raise
        return VllmEngine(self._servers)

    def cancel(self) -> None:
        """End the opening, and what it has started."""
        self._servers.close()
