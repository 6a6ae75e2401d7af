"""A command that takes flags for vLLM's server behind `--`."""

from typing import Any

import typer
from typer.core import TyperCommand

from peagle_cli.engine.open import EMBEDDED

_META = "peagle.server_flags"


class EngineCommand(TyperCommand):
    """With another engine than the embedded one, what stands behind `--` is for the server; with that one it is the
    prompt, as for any program. A context is `Any` because Typer keeps its class to itself."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Set aside what stands behind `--`, unless the embedded engine is meant."""
        if "--" not in args:
            return super().parse_args(ctx, args)
        end = args.index("--")
        rest = super().parse_args(ctx, args[:end])
        if ctx.params.get("engine") == EMBEDDED:
            return super().parse_args(ctx, args)
        ctx.meta[_META] = tuple(args[end + 1 :])
        return rest


def server_flags(ctx: typer.Context) -> tuple[str, ...]:
    """What was set aside."""
    flags: tuple[str, ...] = ctx.meta.get(_META, ())
    return flags
