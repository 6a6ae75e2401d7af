"""The lane of a chat: its name, and how it starts when its user leaves the method or the depth open."""

from peagle_cli.engine.protocol import EngineInfo, LaneSetting
from peagle_cli.trace.events import Method

LANE = "chat"
PREFERRED_METHODS: tuple[Method, ...] = ("peagle", "eagle3", "other", "none")
PUBLISHED_DEPTHS: dict[Method, int] = {"none": 0, "eagle3": 3, "peagle": 7, "other": 7}
"""The depths at which the P-EAGLE authors measured each method at its best."""


def starting_lane(info: EngineInfo, method: Method | None, depth: int | None) -> LaneSetting:
    """The chat's lane, with what was asked for; None is the best method there is, at its published depth or the deepest
    below, or the only depth there is.

    What was asked for is not checked here: the engine does that when it gets the request.
    """
    chosen = method if method is not None else next(m for m in PREFERRED_METHODS if m in info.methods)
    if depth is None:
        published = PUBLISHED_DEPTHS[chosen]
        deepest = info.max_depths.get(chosen, published)
        depth = min(published, deepest) if info.steerable else deepest
    return LaneSetting(LANE, chosen, depth)
