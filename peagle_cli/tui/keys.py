"""Keys of the user's own: what the `[keys]` table of the settings may say, and what it makes of the bindings.

Every binding has an id, as "chat.pause". The table maps ids to a key or a list of keys, by Textual's names: "f5",
"ctrl+g", "left_square_bracket". A widget that has the focus goes before its screen, as ever; only two bindings of one
screen, of one widget or of the application cannot share a key.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from itertools import combinations
from typing import Any

from textual.app import App
from textual.binding import Binding, BindingsMap, BindingType, Keymap
from textual.dom import DOMNode
from textual.keys import Keys, key_to_character

from peagle_cli.errors import BadInputError

_MODIFIERS = {"ctrl", "shift", "alt", "meta", "super", "hyper"}
_NAMED = {key.value for key in Keys}
_FUNCTION = re.compile(r"f\d{1,2}")

Owned = dict[str, tuple[type[DOMNode], Binding]]
"""Bindings by id, each with the class that has it."""


KeyNames = Callable[[str], str]
"""Tells what the key of a binding is called, by the binding's id, as `key_of` does."""


def bindings() -> Owned:
    """All bindings of the screens, widgets and applications of this package that are loaded."""
    return {
        binding.id: (owner, binding)
        for owner in _descendants(DOMNode)
        if owner.__module__.startswith("peagle_cli.tui.")
        for binding in vars(owner).get("BINDINGS", ())
        if binding.id
    }


def keymap(table: Mapping[str, object]) -> dict[str, str]:
    """The `[keys]` table as Textual's keymap. Raises `BadInputError` for ids and keys that there aren't, and for a key
    that would do two things."""
    known = bindings()
    mapped = {}
    for name, keys in _flat(table):
        if name not in known:
            near = [each for each in known if each.split(".")[0] == name.split(".")[0]]
            raise _refused(f"there is no binding {name!r}", f"There are {', '.join(near or known)}.")
        mapped[name] = ",".join("comma" if key == "," else key for key in _checked(name, keys))
    _refuse_clashes(known, mapped)
    return mapped


def applied(listed: Iterable[BindingType], app: App[Any]) -> list[Binding]:
    """`listed` with the keys of the user's own that `app` was given."""
    return _applied(listed, app._keymap)  # which Textual has no public way to ask for


def key_of(app: App[Any], name: str) -> str:
    """How the first key of the binding with the id `name` is called on `app`'s screens: "esc", "^r", "f5"."""
    return app.get_key_display(applied([_binding(name)], app)[0])


@cache
def _binding(name: str) -> Binding:
    """Looked up once: the status line asks for its keys at every frame."""
    return bindings()[name][1]


def keys_by_action(listed: Iterable[BindingType], app: App[Any]) -> dict[str, list[str]]:
    """How the keys are called that do something on `app`'s screens, by the action, `plain`."""
    found: dict[str, list[str]] = {}
    for binding in applied(listed, app):
        names = found.setdefault(plain(binding.action), [])
        if (name := app.get_key_display(binding)) not in names:
            names.append(name)
    return found


def plain(action: str) -> str:
    """An action without the namespace that a widget calls it by."""
    return action.removeprefix("screen.").removeprefix("app.")


def _applied(listed: Iterable[BindingType], mapped: Keymap) -> list[Binding]:
    own = []
    for binding in Binding.make_bindings(listed):
        keys = mapped.get(binding.id) if binding.id else None
        own += [binding] if keys is None else [binding.with_key(key) for key in keys.split(",")]
    return list(dict.fromkeys(own))


def _flat(table: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """`chat.pause = …` in TOML is a table in a table, `"chat.pause" = …` is not: both are meant alike."""
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _checked(name: str, value: object) -> list[str]:
    keys: list[str] = []
    for key in (value or [value]) if isinstance(value, list) else [value]:
        if not isinstance(key, str) or not _is_key(key):
            raise _refused(f"{key!r} for {name} is no key", 'A key is called as in "f5", "ctrl+g", "x", "shift+left".')
        keys.append(key)
    return keys


def _is_key(key: str) -> bool:
    *modifiers, name = key.split("+")
    named = name in _NAMED or _FUNCTION.fullmatch(name) or (name and key_to_character(name))
    return bool(named) and set(modifiers) <= _MODIFIERS


def _refuse_clashes(known: Owned, mapped: Keymap) -> None:
    for (one, (owner, _)), (other, (rival, _)) in combinations(known.items(), 2):
        together = issubclass(owner, rival) or issubclass(rival, owner) or App in (*owner.__mro__, *rival.__mro__)
        if together and (one in mapped or other in mapped):
            shared = _keys(known[one][1], mapped) & _keys(known[other][1], mapped)
            if shared:
                raise _refused(f"{one} and {other} would both be {min(shared)}", "Give one of them another key.")


def _keys(binding: Binding, mapped: Keymap) -> set[str]:
    return set(BindingsMap(_applied([binding], mapped)).key_to_bindings)


def _descendants(base: type[DOMNode]) -> Iterator[type[DOMNode]]:
    for child in base.__subclasses__():
        yield child
        yield from _descendants(child)


def _refused(why: str, hint: str) -> BadInputError:
    return BadInputError(f"The keys in the settings cannot be used: {why}.", hint)
