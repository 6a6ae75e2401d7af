"""Writing a prompt in the user's own editor."""

import os
import shlex
import subprocess
import tempfile
from pathlib import Path

from peagle_cli.errors import BadInputError

_NAME = "prompt.md"


def edit(text: str) -> str:
    """`text` as the user leaves it in the program that `$VISUAL` or `$EDITOR` names, without the newline at its end.

    The program has the terminal until it ends. Its file is in a folder of its owner's and gone afterwards. Raises
    `BadInputError` where no such program is named or can be run, and where it fails or leaves no UTF-8 text: then what
    was written there is not used.
    """
    named = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not named:
        raise BadInputError("No editor is named.", "Set VISUAL or EDITOR, for instance to nano.")
    with tempfile.TemporaryDirectory(prefix="peagle-") as folder:
        file = Path(folder) / _NAME
        file.write_text(text, encoding="utf-8")
        try:
            done = subprocess.run([*shlex.split(named), file], check=False)
            edited = file.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:  # no such program; quotes that do not match; no UTF-8
            raise BadInputError(f"The editor {named!r} was of no use: {error}.", "Set VISUAL or EDITOR.") from error
    if done.returncode:
        raise BadInputError(f"The editor ended with code {done.returncode}; nothing was changed.")
    return edited.removesuffix("\n")
