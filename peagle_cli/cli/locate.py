"""`peagle locate`: where peagle keeps things."""

import typer

from peagle_cli import locations, settings


def locate() -> None:
    """Print where settings, models, recordings and logs are kept.

    Each place but the settings file itself can be moved with the variable named beside it.
    """
    places = (
        ("settings", settings.config_file(), "PEAGLE_CONFIG_DIR"),
        ("themes", locations.themes(), "PEAGLE_CONFIG_DIR"),
        ("models", locations.models(), "PEAGLE_CACHE_DIR"),
        ("sessions", locations.sessions(), "PEAGLE_DATA_DIR"),
        ("logs", locations.logs(), "PEAGLE_LOG_DIR"),
    )
    width = max(len(str(path)) for _, path, _ in places)
    for what, path, variable in places:
        typer.echo(f"{what:<9} {path!s:<{width}}  {variable}")
