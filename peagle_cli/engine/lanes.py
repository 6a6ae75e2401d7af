"""The lane of a chat: its name, and how it starts when its user leaves the method or the depth open."""

from peagle_cli.engine.protocol import EngineInfo, LaneSetting
from peagle_cli.trace.events import Method

LANE = "chat"
PREFERRED_METHODS: tuple[Method, ...] = ("peagle", "eagle3", "other", "none")
PUBLISHED_DEPTHS: dict[Method, int] = {"none": 0, "eagle3": 3, "peagle": 7, "other": 7}
"""The depths at which the P-EAGLE authors measured each method at its best."""

DEPTH_AT_4_BITS = 3
"""The deepest that is usual with weights at 4 bits: torch's kernel for them takes four tokens at a time, so that a pass
over a draft of 3 costs little more than one over a single token, and one over a draft of 4 to 7 much more (a table is
in docs/performance.md)."""


def starting_lane(info: EngineInfo, method: Method | None, depth: int | None) -> LaneSetting:
    """The chat's lane, with what was asked for; None is the best method there is, at its usual depth or the deepest
    below, or the only depth there is.

    What was asked for is not checked here: the engine does that when it gets the request.
    """
    chosen = method if method is not None else next(m for m in PREFERRED_METHODS if m in info.methods)
    if depth is None:
        usual = usual_depth(info, chosen)
        deepest = info.max_depths.get(chosen, usual)
        depth = min(usual, deepest) if info.steerable else deepest
    return LaneSetting(LANE, chosen, depth)


def usual_depth(info: EngineInfo, method: Method) -> int:
    """How deep `method` drafts where nobody says: as published, or less where weights at 4 bits make that dear."""
    published = PUBLISHED_DEPTHS[method]
    return min(published, DEPTH_AT_4_BITS) if info.machine.weights == "int4" else published


def why_shallow(info: EngineInfo, lane: LaneSetting) -> str | None:
    """Why a lane that starts at its usual depth drafts less than published, in a sentence; None where it does not."""
    if lane.depth >= PUBLISHED_DEPTHS[lane.method] or usual_depth(info, lane.method) != lane.depth:
        return None
    return (
        f"Drafts are {lane.depth} deep here, not {PUBLISHED_DEPTHS[lane.method]} as published: with weights at 4 bits, "
        "checking more than 4 tokens at once costs much more."
    )
