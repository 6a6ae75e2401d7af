"""Untrusted text made safe to show: what a model, a file or a log says cannot steer the terminal.

Every character that is not shown as itself is replaced one for one, so that lengths and positions stay: control
characters (but newline and tab), format characters (bidirectional overrides, invisible marks, tags; but not the
joiners that emoji and some scripts need), line and paragraph separators, and lone surrogates.
"""

import os
import re

import msgspec

_REPLACEMENT = "�"
_ONE_LINE = str.maketrans({"\n": "⏎", "\t": "⇥"})
_JOINERS = {0x200C, 0x200D}
_UNSAFE_RANGES = (  # categories Cc, Cf, Zl, Zp and Cs of Unicode 15; a test holds them against `unicodedata`
    (0x00, 0x08),
    (0x0B, 0x1F),
    (0x7F, 0x9F),
    (0xAD, 0xAD),
    (0x600, 0x605),
    (0x61C, 0x61C),
    (0x6DD, 0x6DD),
    (0x70F, 0x70F),
    (0x890, 0x891),
    (0x8E2, 0x8E2),
    (0x180E, 0x180E),
    (0x200B, 0x200F),
    (0x2028, 0x202E),
    (0x2060, 0x2064),
    (0x2066, 0x206F),
    (0xD800, 0xDFFF),
    (0xFEFF, 0xFEFF),
    (0xFFF9, 0xFFFB),
    (0x110BD, 0x110BD),
    (0x110CD, 0x110CD),
    (0x13430, 0x1343F),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0001, 0xE0001),
    (0xE0020, 0xE007F),
)


def _stand_in(code: int) -> str:
    """The visible sign for a C0 control character or delete, U+FFFD for all else."""
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else _REPLACEMENT


_UNSAFE = [code for first, last in _UNSAFE_RANGES for code in range(first, last + 1) if code not in _JOINERS]
_STAND_INS = {code: _stand_in(code) for code in _UNSAFE}
_UNSAFE_PATTERN = re.compile(f"[{''.join(re.escape(chr(code)) for code in _UNSAFE)}]")


def printable(text: str) -> str:
    """`text` with every unsafe character replaced by one visible cell; the same length as `text`."""
    return text.translate(_STAND_INS)


def one_line(text: str) -> str:
    """`text` with visible line breaks and tabs, safe to show within a line; the same length as `text`."""
    return printable(text).translate(_ONE_LINE)


def printable_json(line: bytes) -> bytes:
    r"""A line of JSON with every unsafe character written as its `\u` escape: the same value, safe to print."""
    return _UNSAFE_PATTERN.sub(lambda match: _json_escape(match[0]), line.decode()).encode()


def json_document(value: object) -> str:
    """`value` as indented JSON, safe to print, with a newline at its end."""
    encoded = msgspec.json.encode(value, enc_hook=os.fspath)  # of what msgspec itself does not know, paths alone
    return printable_json(msgspec.json.format(encoded)).decode() + "\n"


def _json_escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
