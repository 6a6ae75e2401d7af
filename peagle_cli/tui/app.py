"""The application: its screen, its themes, and how `peagle chat` starts it."""

from textual.app import App

from peagle_cli.tui.options import ChatOptions


class ChatApp(App[int]):
    """Talks to one engine; ends with the process's exit code."""

    def __init__(self, options: ChatOptions) -> None:
        super().__init__()
        self.options = options


def run_chat(options: ChatOptions) -> int:
    """Open the chat screen and stay in it until the user leaves. Returns the exit code."""
    result = ChatApp(options).run()
    return result if result is not None else 0
