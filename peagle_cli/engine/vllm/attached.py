"""A server that runs already, here or elsewhere: with a tap all that peagle can show, without one what streams tell."""

import contextlib
import os
import platform
from collections.abc import Callable
from pathlib import Path

import peagle_cli
from peagle_cli import locations
from peagle_cli.engine.protocol import EngineInfo, EngineSpec, Request
from peagle_cli.engine.vllm import wire
from peagle_cli.engine.vllm.attempt import Backend
from peagle_cli.engine.vllm.batches import Texts
from peagle_cli.engine.vllm.link import TapLink
from peagle_cli.engine.vllm.own import ENGINE, machine_of, notes_on
from peagle_cli.engine.vllm.server import Counters, Served, Server, caches_as_on_cpus
from peagle_cli.errors import BadInputError, PeagleError
from peagle_cli.models import hub
from peagle_cli.models.progress import OnProgress, Progress
from peagle_cli.models.tokenizer import Tokenizer
from peagle_cli.trace.events import METHOD_NAMES, SERVER, UNKNOWN, Machine, Method

OTHER_ENGINE = "OpenAI-compatible server"
TAP_VARIABLE = "PEAGLE_TAP"

_TAP_S = 1.0  # for a tap to answer that may not be there
_UNKNOWN_CONTEXT = 1_000_000


class AttachedServer:
    """The server whose address the spec gives as its engine; `open` must come first."""

    def __init__(self, spec: EngineSpec) -> None:
        self._spec = spec
        self._server = Server(spec.engine)
        self._link: TapLink | None = None
        self._before: Counters | None = None
        self._seems_a_cpu = False  # where no tap tells

    def open(self, on_progress: OnProgress) -> None:
        """Ask the server what it is. Raises `BadInputError` for what it cannot be used for, `PeagleError` where nobody
        answers."""
        spec, server = self._spec, self._server
        if spec.drafters or spec.flags or spec.device or spec.dtype:
            raise BadInputError(
                "A server that runs has its drafter, device and flags.",
                "Leave --drafter, --device, --dtype and -- out.",
            )
        on_progress(Progress(f"Asking {server.url}"))
        served = self._chosen(server.models())
        version = server.version()
        self._link = self._find_tap() if version else None
        hello = self._link.hello if self._link else None
        self._before = counters = server.counters() if version else None
        self._seems_a_cpu = hello is None and counters is not None and caches_as_on_cpus(server.metrics())
        self._method: Method = self._method_of(hello, counters)
        depth = hello.depth if hello else len(counters.accepted_at) if counters else 0
        self._backend = Backend(
            server, served.id, self._link, depth, version is not None, self._texts(served, hello) if version else None
        )
        self._info = EngineInfo(
            engine=ENGINE if version else OTHER_ENGINE,
            model=served.id,
            drafters={} if self._method == "none" else {self._method: _drafter_name(hello)},
            max_depths={} if self._method == "none" else {self._method: depth},
            context=(hello.context if hello else served.context) or _UNKNOWN_CONTEXT,
            machine=machine_of(hello) if hello else Machine(SERVER, server.url, UNKNOWN, UNKNOWN, 0),
            versions={
                "peagle": peagle_cli.__version__,
                "python": platform.python_version(),
                **({"vllm": version} if version else {}),
            },
            steerable=hello.steers if hello else False,
            takes_turns=False,
            notes=tuple(self._notes(hello, version, counters)),
        )

    @property
    def info(self) -> EngineInfo:
        """What it is."""
        return self._info

    def check(self, request: Request) -> None:
        """Raise `BadInputError` for a request that this server would get wrong."""
        hello = self._link.hello if self._link else None
        if request.sampling.temperature > 0 and hello and not hello.samples:
            raise BadInputError(
                "On a CPU this vLLM samples from the wrong distribution beside drafts (vLLM issue 55005), and ends "
                "where a request with a seed has a long prompt.",
                f"Use temperature 0, or start it with --worker-extension-cls {wire.EXTENSION}, which mends both.",
            )
        if request.sampling.temperature > 0 and self._seems_a_cpu:
            raise BadInputError(
                "This vLLM has no tap and seems to run on a CPU, by the size of its cache's blocks: there it samples "
                "from the wrong distribution beside drafts (vLLM issue 55005).",
                "Use temperature 0, or add to it what `peagle tap` prints, which mends that.",
            )
        for lane in request.lanes:
            if not self._info.steerable and (lane.method != self._method or lane.depth != self._backend.depth):
                if lane.method == self._method == "none":
                    continue
                raise BadInputError(
                    f"This server drafts {self._backend.depth} tokens per step ({METHOD_NAMES[self._method]}), and "
                    "cannot be told otherwise.",
                    "`peagle tap` says how to start one that can.",
                )

    def backend(self, method: Method, wanted: Callable[[], bool]) -> Backend:
        """The server: plain decoding, too, is on it, with no drafts verified."""
        if self._link is None and self._backend.vllm:
            self._before = self._server.counters()
        return self._backend

    def remark(self, backend: Backend) -> str:
        """What the server itself has counted meanwhile, where no tap tells."""
        if self._link is not None or self._before is None:
            return ""
        with contextlib.suppress(PeagleError, ValueError):  # ValueError: restarted with other positions
            if now := self._server.counters():
                told = now.since(self._before)
                return (
                    f"The server's counters for this time, all its requests: {told.drafts} drafts, "
                    f"{told.draft_tokens} tokens drafted, {told.accepted_tokens} accepted."
                )
        return ""

    def why_gone(self, backend: Backend, error: PeagleError) -> PeagleError:
        """What is known: the server's log is elsewhere."""
        if error.hint or isinstance(error, BadInputError):
            return error
        return type(error)(error.message, f"The log of {self._server.url} tells more.")

    def close(self) -> None:
        """Hang up."""
        if self._link is not None:
            self._link.close()
            self._link = None

    def _chosen(self, served: list[Served]) -> Served:
        names = [model.id for model in served]
        if self._spec.model is not None:
            found = next((model for model in served if model.id == self._spec.model), None)
            if found is None:
                raise BadInputError(
                    f"{self._server.url} does not serve {self._spec.model}.", f"It serves {', '.join(names)}."
                )
            return found
        if len(served) != 1:
            raise BadInputError(
                f"{self._server.url} serves {', '.join(names) or 'no model'}.", "Name one with --model."
            )
        return served[0]

    def _find_tap(self) -> TapLink | None:
        """The tap that `PEAGLE_TAP` names, or that of a server on this machine, where `peagle tap` puts it."""
        named = os.environ.get(TAP_VARIABLE)
        if named:
            link = TapLink.connect(named)
            if link is None:
                raise PeagleError(f"No tap answers at {named}.", f"Mend or unset {TAP_VARIABLE}.")
            return link
        folder = locations.tap(self._server.port)
        return TapLink.connect(f"ipc://{folder}", _TAP_S) if self._server.is_local and folder.is_dir() else None

    def _method_of(self, hello: wire.Hello | None, counters: Counters | None) -> Method:
        if hello is None:
            return "none" if counters is None else self._spec.method or "other"
        if hello.method is None:
            return "none"
        if hello.method not in ("eagle3", "eagle"):
            return "other"
        return "peagle" if hello.parallel else "eagle3"

    def _texts(self, served: Served, hello: wire.Hello | None) -> Callable[[], Texts]:
        for name in filter(None, (hello.model if hello else None, served.root, served.id)):
            folder = Path(name) if Path(name).is_dir() else hub.cached(name) if hub.is_hub_name(name) else None
            if folder is not None and (folder / "tokenizer.json").is_file():
                return Tokenizer.load(folder).stream
        return _ServerTexts(self._server, served.id).fork

    def _notes(self, hello: wire.Hello | None, version: str | None, counters: Counters | None) -> list[str]:
        if hello:
            notes = [*hello.notes, *notes_on(hello)]
            if hello.depth and hello.steers:
                notes.append(
                    "Plain decoding on this server is drafting with nothing verified: for a baseline, use a server "
                    "without speculation."
                )
            return notes
        if version is None:
            return [
                "This server is not vLLM: its replies are shown as they come, a piece at a time. What was drafted is "
                "not told, and tokens are counted by pieces."
            ]
        if counters is None:
            return [
                "This server does not draft, and has no tap: times are those at which its replies arrive. `peagle tap` "
                "says what to add to it."
            ]
        return [
            "This server has no tap: rejected drafts are unknown, accepted ones are told from tokens that arrive "
            "together, and times are those at which they arrive. `peagle tap` says what to add to it."
        ]


class _ServerTexts:
    """Decodes by the server's tokeniser, where there is none here: a call for tokens not seen before."""

    def __init__(self, server: Server, model: str, known: dict[tuple[int, ...], str] | None = None) -> None:
        self._server = server
        self._model = model
        self._known = {} if known is None else known
        self._unfinished: tuple[int, ...] = ()

    def push(self, token_id: int) -> str:
        """The text that a token adds; "" inside an unfinished character."""
        ids = (*self._unfinished, token_id)
        if ids not in self._known:
            self._known[ids] = self._server.text_of(self._model, list(ids)) or ""
        text = self._known[ids]
        self._unfinished = ids if text.endswith("\N{REPLACEMENT CHARACTER}") else ()
        return "" if self._unfinished else text

    def fork(self) -> "_ServerTexts":
        """An independent stream that goes on from here."""
        fork = _ServerTexts(self._server, self._model, self._known)
        fork._unfinished = self._unfinished
        return fork


def _drafter_name(hello: wire.Hello | None) -> str:
    if hello is None:
        return UNKNOWN
    return Path(hello.drafter).name if hello.drafter else str(hello.method)
