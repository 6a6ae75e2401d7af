"""What every engine refuses before it starts: requests and settings outside of what was opened."""

import math

from peagle_cli.engine.protocol import Command, EngineInfo, LaneSetting, Request, SetDepth, SetMethod
from peagle_cli.errors import BadInputError
from peagle_cli.trace.events import METHOD_NAMES, Method, Sampling

MAX_CANDIDATES = 50


def check_request(request: Request, info: EngineInfo) -> None:
    """Raise `BadInputError` for a request that an engine described by `info` cannot serve."""
    if not request.messages or not request.messages[-1].content.strip():
        raise BadInputError("The prompt is empty.", "Write what the model is to answer.")
    if request.max_tokens < 1:
        raise BadInputError(f"A limit of {request.max_tokens} tokens leaves no room for a reply.", "Allow 1 or more.")
    if not 0 <= request.candidates <= MAX_CANDIDATES:
        raise BadInputError(f"{request.candidates} candidates are too many.", f"Ask for 0 to {MAX_CANDIDATES}.")
    check_sampling(request.sampling)
    names = [lane.name for lane in request.lanes]
    if not names or len(set(names)) < len(names):
        raise BadInputError("A request needs one lane or several with different names.")
    for lane in request.lanes:
        check_lane(lane, info)


def check_lane(lane: LaneSetting, info: EngineInfo) -> None:
    """Raise `BadInputError` for a method that was not opened or a depth outside of its range."""
    check_method(lane.method, info)
    if lane.method == "none":
        check_depth(lane.depth, max(info.max_depths.values(), default=lane.depth))
    else:
        check_depth(lane.depth, info.max_depths[lane.method])


def check_command(command: Command, info: EngineInfo) -> None:
    """Raise `BadInputError` for a command that no lane could obey."""
    if isinstance(command, SetMethod):
        check_method(command.method, info)
    elif isinstance(command, SetDepth):
        check_depth(command.depth, max(info.max_depths.values(), default=0))


def check_steerable(info: EngineInfo) -> None:
    """Raise `BadInputError` unless the engine obeys commands."""
    if not info.steerable:
        raise BadInputError(
            "This server cannot be steered: depth, method and pace are its own.",
            "`peagle tap` says how to start one that can.",
        )


def check_method(method: Method, info: EngineInfo) -> None:
    """Raise `BadInputError` for a method that has no drafter."""
    if method not in info.methods:
        raise BadInputError(
            f"There is no {METHOD_NAMES[method]} drafter for {info.model}.",
            f"Choose --method {' or '.join(info.methods)}. Drafters are named by --drafter, and on a server of your "
            "own where it is started.",
        )


def check_depth(depth: int, limit: int) -> None:
    """Raise `BadInputError` for a depth below 0 or above `limit`."""
    if not 0 <= depth <= limit:
        raise BadInputError(f"A depth of {depth} is out of range.", f"Draft 0 to {limit} tokens per step.")


def check_sampling(sampling: Sampling) -> None:
    """Raise `BadInputError` for numbers that describe no distribution."""
    if not 0 <= sampling.temperature < math.inf:
        raise BadInputError(f"A temperature of {sampling.temperature} is out of range.", "Use 0 (greedy) or more.")
    if not 0 < sampling.top_p <= 1:
        raise BadInputError(f"A top-p of {sampling.top_p} is out of range.", "Use more than 0, and 1 at most.")
    if sampling.top_k < 0:
        raise BadInputError(f"A top-k of {sampling.top_k} is out of range.", "Use 0 (no limit) or more.")
    if sampling.seed is not None and not 0 <= sampling.seed < 2**63:
        raise BadInputError(f"A seed of {sampling.seed} is out of range.", f"Use 0 to {2**63 - 1}.")
