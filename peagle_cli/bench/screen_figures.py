"""What the screen is measured by."""

import msgspec


class Playing(msgspec.Struct, frozen=True):
    """A replay for some seconds: of thirty frames a second, how many something was drawn in; how many milliseconds
    later than it asked for a task gets its turn; and the process's CPU time for a frame, in milliseconds."""

    frames_per_s: float
    lag_p50_ms: float
    lag_p95_ms: float
    cpu_ms_per_frame: float


class ReplayFigures(msgspec.Struct, frozen=True):
    """A session of `tokens` tokens, replayed at `tokens_per_s`: at its beginning, and behind nearly all of it.

    `seek_s` is the longest of several jumps to and fro; `relayout_s` is how long laying out the part in view with
    other drafts takes, as after a change of width (the rest follows, a little at a time). `memory_mb` is the most that
    the process needed, `idle_percent` what it needs of a core once the replay has ended.
    """

    tokens: int
    tokens_per_s: float
    beginning: Playing
    end: Playing
    seek_s: float
    relayout_s: float
    memory_mb: float
    idle_percent: float


class ChatFigures(msgspec.Struct, frozen=True):
    """`over_headless` is the speed of replies on the screen over that of the same replies by the same engine without
    one; `idle_percent` is what a chat needs of a core that waits for a prompt, `paused_percent` in a paused reply."""

    over_headless: float
    idle_percent: float
    paused_percent: float


class ScreenFigures(msgspec.Struct, frozen=True):
    """All of it, on a terminal of so many columns and lines."""

    columns: int
    lines: int
    replay: ReplayFigures
    chat: ChatFigures
