"""A chat whose terminal is a page in a browser: started by the server for each tab, with the file of its options."""

import sys
from pathlib import Path

import msgspec

from peagle_cli.errors import PeagleError
from peagle_cli.text import printable
from peagle_cli.tui.app import run_chat
from peagle_cli.tui.options import ChatOptions


def main(options: Path) -> int:
    """Chat until the user leaves, or the tab is closed. Returns the exit code."""
    try:
        return run_chat(msgspec.json.decode(options.read_bytes(), type=ChatOptions))
    except PeagleError as error:
        sys.stderr.write(f"Error: {printable(str(error))}\n")  # the server passes it on to its own terminal
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
