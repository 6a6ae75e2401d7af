"""Where peagle keeps things; each place can be moved with a `PEAGLE_*` variable."""

import os
from pathlib import Path

import platformdirs

APP = "peagle"


def _place(variable: str, default: str) -> Path:
    return Path(os.environ.get(variable) or default).expanduser()


def cache() -> Path:
    """Downloaded and converted models; safe to delete. `PEAGLE_CACHE_DIR` moves it."""
    return _place("PEAGLE_CACHE_DIR", platformdirs.user_cache_dir(APP))


def models() -> Path:
    """Target models, one folder each."""
    return cache() / "models"


def config() -> Path:
    """The configuration file. `PEAGLE_CONFIG_DIR` moves it."""
    return _place("PEAGLE_CONFIG_DIR", platformdirs.user_config_dir(APP))


def themes() -> Path:
    """The user's own themes."""
    return config() / "themes"


def data() -> Path:
    """Recorded sessions, and the history of prompts. `PEAGLE_DATA_DIR` moves it."""
    return _place("PEAGLE_DATA_DIR", platformdirs.user_data_dir(APP))


def sessions() -> Path:
    """The recordings of chats and races."""
    return data() / "sessions"


def prompts() -> Path:
    """What was written in the prompt."""
    return data() / "prompts.jsonl"


def logs() -> Path:
    """One log file per engine process. `PEAGLE_LOG_DIR` moves it."""
    return _place("PEAGLE_LOG_DIR", platformdirs.user_log_dir(APP))


def tap(port: int) -> Path:
    """Where the tap of a vLLM server on this port of this machine listens, unless it is told otherwise."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")  # one's own, as the cache is
    return (Path(runtime) / APP if runtime else cache()) / f"tap-{port}"


def nearest_existing(place: Path) -> Path:
    """`place`, or the first of its parents that there is: what it would be made in."""
    return next(path for path in (place, *place.parents) if path.exists())
