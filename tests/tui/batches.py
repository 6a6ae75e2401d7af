"""Events as an engine would give them out, made to measure."""

from peagle_cli.engine.protocol import EngineInfo
from peagle_cli.trace.events import DraftBatch, Machine, Method, Token

MACHINE = Machine(device="cpu", name="", dtype="float32", weights="float32", threads=1)
INFO = EngineInfo(
    engine="torch",
    model="Model",
    drafters={"eagle3": "E", "peagle": "P"},
    max_depths={"eagle3": 4, "peagle": 8},
    context=4096,
    machine=MACHINE,
    versions={},
)


def batch(
    drafted: str | list[str] = "",
    accepted: int = 0,
    bonus: str = "",
    *,
    step: int = 1,
    emitted: int | None = None,
    method: Method = "peagle",
    clock_s: float = 1.0,
) -> DraftBatch:
    """A step whose drafts are the characters or the items of `drafted`."""
    return DraftBatch(
        lane="chat",
        step=step,
        method=method if drafted else "none",
        depth=len(drafted),
        drafted=tuple(Token(i, text) for i, text in enumerate(drafted)),
        accepted=accepted,
        bonus=Token(99, bonus),
        emitted=accepted + 1 if emitted is None else emitted,
        draft_s=0.002,
        verify_s=0.008,
        clock_s=clock_s,
    )
