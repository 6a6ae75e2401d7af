"""A headless Chromium, spoken to over its debugging pipe: pages opened from files, clicked and asked."""

import fcntl
import itertools
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Page:
    """One tab. `messages` collects what it logged and its scripts' errors, `requests` the addresses it asked for."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to, self._from = to_browser, os.fdopen(from_browser, "rb")
        self._ids = itertools.count(1)
        self._session: str | None = None
        self.messages: list[str] = []
        self.requests: list[str] = []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")

    def open(self, address: str) -> None:
        """Load a page to its end."""
        self.open_as(address, address)

    def open_as(self, address: str, shown: str) -> None:
        """Load a page to its end, where it gives itself another address."""
        self._call("Page.navigate", url="about:blank")  # so that another fragment is another page
        self._call("Page.navigate", url=address)
        while self.run("document.readyState + location.href") != f"complete{shown}":
            pass

    def write(self, text: str) -> None:
        """Press the keys for `text`, one after the other."""
        for char in text:
            key = {"key": "Enter", "windowsVirtualKeyCode": 13} if char == "\r" else {"key": char}
            self._call("Input.dispatchKeyEvent", type="keyDown", text=char, **key)

    def run(self, script: str) -> Any:
        """The value of an expression in the page, a promise's when it is one."""
        answer = self._call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def _call(self, method: str, **parameters: object) -> Any:
        id = next(self._ids)
        message: dict[str, object] = {"id": id, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = json.loads(self._next_message())
            if answer.get("id") == id:
                assert "error" not in answer, answer["error"]
                return answer["result"]
            self._note(answer)

    def _next_message(self) -> bytes:
        return b"".join(iter(self._next_byte, b"\0"))

    def _next_byte(self) -> bytes:
        byte = self._from.read(1)
        assert byte, "the browser is gone"
        return byte

    def _note(self, event: Any) -> None:
        match event.get("method"):
            case "Runtime.exceptionThrown" | "Runtime.consoleAPICalled" | "Log.entryAdded":
                self.messages.append(json.dumps(event["params"]))
            case "Network.requestWillBeSent":
                self.requests.append(event["params"]["request"]["url"])


@contextmanager
def page(profile: Path) -> Iterator[Page]:
    """A tab in a browser of its own, which ends with it."""
    assert CHROMIUM
    commands_out, commands_in = os.pipe()
    answers_out, answers_in = os.pipe()
    options = ["--headless", "--remote-debugging-pipe", f"--user-data-dir={profile}", "--disable-gpu"]
    if os.geteuid() == 0:
        options.append("--no-sandbox")
    theirs = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (commands_out, answers_in)]  # out of the way of 3 and 4
    process = subprocess.Popen(
        ["bash", "-c", f'exec "$@" 3<&{theirs[0]} 4>&{theirs[1]}', "bash", CHROMIUM, *options],
        pass_fds=theirs,
        stderr=subprocess.DEVNULL,
    )
    for end in (commands_out, answers_in, *theirs):
        os.close(end)
    try:
        yield Page(commands_in, answers_out)
    finally:
        os.close(commands_in)  # the browser ends with its pipe
        process.wait(30)
