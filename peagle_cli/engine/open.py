"""Where engines are opened: the only place that knows which kind a spec asks for."""

from concurrent.futures import ThreadPoolExecutor, wait

from peagle_cli.engine.process import Opening as ProcessOpening
from peagle_cli.engine.protocol import Engine, EngineSpec, Opening
from peagle_cli.errors import BadInputError
from peagle_cli.models.progress import OnProgress
from peagle_cli.models.served import check_embedded

EMBEDDED = "torch"
VLLM = "vllm"
_LOOK_S = 0.1


def start_engine(spec: EngineSpec) -> Opening:
    """Begin to load an engine: `wait` for it in a thread, and `cancel` from any other.

    Raises `BadInputError` for an engine that there is not.
    """
    if spec.engine == EMBEDDED:
        if spec.flags:
            raise BadInputError("Flags behind -- are for vLLM's server.", "Add --engine vllm, or leave them out.")
        check_embedded(spec.model, "Add --engine vllm.")
        return ProcessOpening(spec)
    if spec.dtype == "int4":
        raise BadInputError("4-bit weights are the embedded engine's.", "Leave --dtype out, or --engine.")
    # Here, not above: who talks to the embedded engine needs nothing of ZeroMQ.
    from peagle_cli.engine.vllm.opening import VllmOpening  # noqa: PLC0415

    if spec.engine == VLLM or "://" in spec.engine:
        return VllmOpening(spec)
    raise BadInputError(
        f"There is no engine called {spec.engine!r}.", f"Use {EMBEDDED}, {VLLM}, or a server's address."
    )


def open_engine(spec: EngineSpec, on_progress: OnProgress) -> Engine:
    """Load an engine and wait for it. Raises `BadInputError` or `PeagleError` when it cannot be opened.

    `on_progress` is called from another thread: this one looks up from its waiting again and again, since a Ctrl+C that
    comes just before a read begins would be heard only when that has ended.
    """
    opening = start_engine(spec)
    with ThreadPoolExecutor(max_workers=1) as waiting:
        opened = waiting.submit(opening.wait, on_progress)
        try:
            while not wait((opened,), _LOOK_S).done:
                pass
            return opened.result()
        except BaseException:
            opening.cancel()
            raise
