"""vLLM, where there is one, and the servers that tests share: one with P-EAGLE, and, for those that need another, one
with EAGLE-3."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from peagle_cli.engine.protocol import EngineSpec
from peagle_cli.engine.vllm import installation
from peagle_cli.engine.vllm.client import VllmEngine
from peagle_cli.engine.vllm.own import OwnServers
from peagle_cli.errors import BadInputError
from peagle_cli.models.progress import Progress

FLAGS = (
    *("--max-model-len", "1024", "--max-num-seqs", "16", "--max-num-batched-tokens", "256"),
    *("--block-size", "128", "--num-gpu-blocks-override", "9"),
    *("--per-request-spec-decode-metrics", "detailed"),
)
"""Prompts of more than 256 tokens are processed in parts. There is room for eight blocks of 128 tokens: of requests
that grow beyond one each, some are preempted."""


class Opened:
    """Servers of our own, the engine on them, and what was said while they opened."""

    def __init__(self, servers: OwnServers, said: list[Progress]) -> None:
        self.servers = servers
        self.engine = VllmEngine(servers)
        self.said = said


@contextmanager
def opening(*flags: str) -> Iterator[Opened]:
    """Servers with such flags, of which the first runs."""
    said: list[Progress] = []
    servers = OwnServers(EngineSpec(engine="vllm", dtype="bfloat16", flags=flags))
    try:
        servers.open(said.append)
        yield Opened(servers, said)
    finally:
        servers.close()


@pytest.fixture(scope="session")
def vllm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """For tests that need vLLM, whose logs are not the user's; without it they are skipped."""
    try:
        installation.find()
    except BadInputError as error:
        pytest.skip(f"without vLLM: {error.message}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PEAGLE_LOG_DIR", str(tmp_path_factory.mktemp("logs")))
        yield


@pytest.fixture(scope="session")
def opened(vllm: None) -> Iterator[Opened]:
    with opening(*FLAGS) as opened:
        yield opened
