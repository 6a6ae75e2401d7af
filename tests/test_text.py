"""No text can steer the terminal, and none is lost."""

import json
import sys
import unicodedata

from peagle_cli.text import printable, printable_json

EVERYTHING = [chr(code) for code in range(sys.maxunicode + 1)]
JOINERS = "\u200c\u200d"


def is_unsafe(character: str) -> bool:
    if character in "\n\t" + JOINERS:
        return False
    return unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp", "Cs")


def test_replaces_what_unicode_calls_control_or_format_and_nothing_else() -> None:
    shown = printable("".join(EVERYTHING))
    assert len(shown) == len(EVERYTHING)
    for character, stand_in in zip(EVERYTHING, shown, strict=True):
        if is_unsafe(character):
            assert not is_unsafe(stand_in), f"U+{ord(character):04X} is let through"
        elif unicodedata.category(character) != "Cn":  # newer Unicode versions may assign it
            assert stand_in == character, f"U+{ord(character):04X} is lost"


def test_shows_which_control_character_there_was() -> None:
    assert printable("a\x1b[31mb\x07\x7f\x9b\u202e") == "a␛[31mb␇␡��"
    assert printable("line\n\tnext 👩‍👩‍👧") == "line\n\tnext 👩‍👩‍👧"


def test_json_keeps_its_value() -> None:
    text = "".join(character for character in EVERYTHING if unicodedata.category(character) != "Cs")
    line = printable_json(json.dumps({"text": text}, ensure_ascii=False).encode())
    assert json.loads(line) == {"text": text}
    assert not any(map(is_unsafe, line.decode()))
