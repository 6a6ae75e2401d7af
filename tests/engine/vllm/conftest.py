"""The servers that tests share: one with P-EAGLE, and, for those that need another, one with EAGLE-3."""

from collections.abc import Iterator

import pytest

from peagle_cli.engine.protocol import EngineSpec
from peagle_cli.engine.vllm import installation
from peagle_cli.engine.vllm.client import VllmEngine
from peagle_cli.engine.vllm.own import OwnServers
from peagle_cli.errors import BadInputError
from peagle_cli.models.progress import Progress

FLAGS = (
    *("--max-model-len", "2048", "--max-num-seqs", "16", "--max-num-batched-tokens", "256"),
    *("--block-size", "128", "--num-gpu-blocks-override", "17"),
    *("--per-request-spec-decode-metrics", "detailed"),
)
"""Prompts of more than 256 tokens are processed in parts, and a dozen requests do not have room for their context:
some are preempted."""


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
        servers = OwnServers(EngineSpec(engine="vllm", dtype="bfloat16", flags=FLAGS))
        try:
            servers.open(said.append)
            yield Opened(servers, said)
        finally:
            servers.close()
