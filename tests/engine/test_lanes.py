"""How a chat's lane starts where its user leaves method and depth open."""

import msgspec
import pytest

from peagle_cli.engine.lanes import starting_lane, why_shallow
from peagle_cli.engine.protocol import EngineInfo
from peagle_cli.engine.torch.engine import TorchEngine


@pytest.fixture
def at_4_bits(tiny_engine: TorchEngine) -> EngineInfo:
    info = tiny_engine.info
    return msgspec.structs.replace(info, machine=msgspec.structs.replace(info.machine, weights="int4"))


def test_drafts_are_as_deep_as_published(tiny_engine: TorchEngine) -> None:
    lane = starting_lane(tiny_engine.info, None, None)
    assert (lane.method, lane.depth) == ("peagle", 7)
    assert starting_lane(tiny_engine.info, "eagle3", None).depth == 3
    assert why_shallow(tiny_engine.info, lane) is None


def test_drafts_are_shallower_with_weights_at_4_bits_and_it_is_said_why(at_4_bits: EngineInfo) -> None:
    lane = starting_lane(at_4_bits, None, None)
    assert (lane.method, lane.depth) == ("peagle", 3)
    assert "3 deep here, not 7" in (why_shallow(at_4_bits, lane) or "")
    assert why_shallow(at_4_bits, starting_lane(at_4_bits, "eagle3", None)) is None


def test_what_was_asked_for_is_what_one_gets(at_4_bits: EngineInfo) -> None:
    assert starting_lane(at_4_bits, "peagle", 7).depth == 7
