"""The servers that tests share: one with P-EAGLE, and, for those that need another, one with EAGLE-3."""

from collections.abc import Iterator

import pytest

from peagle_cli.engine.protocol import EngineSpec
from peagle_cli.engine.vllm import installation
from peagle_cli.engine.vllm.client import VllmEngine
from peagle_cli.engine.vllm.own import OwnServers
from peagle_cli.errors import BadInputError
from peagle_cli.models.progress import Progress


class Opened:
    """Servers of our own, the engine on them, and what was said while they opened."""

    def __init__(self, servers: OwnServers, said: list[Progress]) -> None:
        self.servers = servers
        self.engine = VllmEngine(servers)
        self.said = said


@pytest.fixture(scope="session")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    try:
        installation.find()
    except BadInputError as error:
        pytest.skip(f"without vLLM: {error.message}")
    said: list[Progress] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PEAGLE_LOG_DIR", str(tmp_path_factory.mktemp("logs")))
        servers = OwnServers(EngineSpec(engine="vllm", dtype="bfloat16", flags=("--max-model-len", "2048")))
        try:
            servers.open(said.append)
            yield Opened(servers, said)
        finally:
            servers.close()
