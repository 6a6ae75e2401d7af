"""What the program that measures within the engine is asked for."""

import msgspec

from peagle_cli.engine.protocol import EngineSpec
from peagle_cli.trace.rounds import Setting


class Order(msgspec.Struct, frozen=True):
    """What to open, and how the steps draft whose budgets are asked for."""

    spec: EngineSpec
    settings: tuple[Setting, ...]
