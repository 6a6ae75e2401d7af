"""`peagle config`: which settings are in force, where each comes from, and the file that they are made in."""

from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from typing import Annotated, Any

import tomlkit
import typer

from peagle_cli import settings
from peagle_cli.errors import BadInputError, PeagleError
from peagle_cli.text import one_line

_EXAMPLES: dict[str, Any] = {
    "model": "smollm2-135m-instruct",
    "drafter": ["path/of/a/drafter"],
    "method": "peagle",
    "depth": 7,
    "seed": 1,
    "system": "Answer in one sentence.",
    "theme": "dark",
    "dtype": "float32",
    "device": "cpu",
}
"""What a setting without a default looks like."""

_UNSET = "–"


def config(
    ctx: typer.Context,
    init: Annotated[bool, typer.Option("--init", help="Write the file, with every setting explained.")] = False,
    edit: Annotated[
        bool, typer.Option("--edit", help="Open the file in $VISUAL or $EDITOR; writes it first if there is none.")
    ] = False,
) -> None:
    """Print the settings in force, and where each comes from: the default, config.toml, or a variable."""
    path = settings.config_file()
    chat = _chat(ctx)
    if init and path.exists():
        raise BadInputError(f"There are settings in {path} already.", "Change them with peagle config --edit.")
    if init or (edit and not path.exists()):
        _write(_explained(chat))
    if edit:
        from peagle_cli.tui.editor import edit as edited

        _write(edited(path.read_text(encoding="utf-8")) + "\n")
        settings.read(path)
    elif init:
        typer.echo(path)
    else:
        _print(list(_in_force(chat)))


def _chat(ctx: typer.Context) -> Any:
    """The command whose options the settings are. `Any`, for Typer keeps the class of commands to itself."""
    group: Any = ctx.find_root().command
    return group.get_command(ctx, "chat")


def _in_force(chat: Any) -> Iterator[tuple[str, str, str]]:
    """Each setting, its value as TOML, and where that comes from."""
    made = settings.read(settings.config_file())
    context = chat.make_context("chat", [], default_map=dict(made))
    options = {option.name: option for option in chat.params}
    for name in settings.Settings.__struct_fields__:
        if name not in options:
            yield name, _as_toml(getattr(settings.Settings(**made), name)), "config.toml" if name in made else "default"
            continue
        source = context.get_parameter_source(name).name
        place = {"DEFAULT_MAP": "config.toml", "ENVIRONMENT": options[name].envvar}.get(source, "default")
        yield name, _as_toml(context.params[name]), place


def _explained(chat: Any) -> str:
    """The settings file with everything in it, commented out: above each setting, what it is."""
    from peagle_cli.tui.keys import bindings

    import_module("peagle_cli.tui.app")  # and with it the screens, whose keys are listed
    options = {option.name: option for option in chat.params}
    lines = ["# Settings of peagle. A variable overrides a setting, an option overrides both.", ""]
    for name in settings.Settings.__struct_fields__:
        if name in options:
            option = options[name]
            example = _EXAMPLES.get(name, option.default)
            lines += [f"# {option.help} ({option.envvar})", f"# {name} = {_as_toml(example)}", ""]
    lines += ["# Whether the screen heeds the mouse.", "# mouse = true", ""]
    lines += ['# Keys of the screens: one, or several in a list. They are called as in "f5", "ctrl+g", "shift+left".']
    lines += ["[keys]"]
    for name, (_, binding) in sorted(bindings().items()):
        keys = binding.key.split(",")
        about = binding.tooltip or binding.description or binding.action
        lines += ["", f"# {about}", f'# "{name}" = {_as_toml(keys if len(keys) > 1 else keys[0])}']
    return "\n".join(lines) + "\n"


def _as_toml(value: object) -> str:
    if value is None or value in ((), {}):
        return _UNSET
    if isinstance(value, dict):
        table = tomlkit.inline_table()
        table.update(value)
        return str(table.as_string())
    plain = value.value if isinstance(value, Enum) else value
    return str(tomlkit.item(list(plain) if isinstance(plain, tuple) else plain).as_string())


def _print(rows: list[tuple[str, str, str]]) -> None:
    names, values = (max(len(row[column]) for row in rows) for column in (0, 1))
    for name, value, source in rows:
        typer.echo(one_line(f"{name:<{names}}  {value:<{values}}  {source}"))


def _write(text: str) -> None:
    path = settings.config_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise PeagleError(f"{path} cannot be written: {error.strerror}.", "Move it with PEAGLE_CONFIG_DIR.") from error
