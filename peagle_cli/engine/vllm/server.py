"""An OpenAI-compatible server, over HTTP: what it serves, its counters, and replies as they stream.

An API key comes from the environment only: `PEAGLE_API_KEY`, or `VLLM_API_KEY`.
"""

import contextlib
import http.client
import os
import re
import socket
import ssl
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import msgspec

from peagle_cli.errors import BadInputError, PeagleError
from peagle_cli.text import printable

KEY_VARIABLES = ("PEAGLE_API_KEY", "VLLM_API_KEY")

_TIMEOUT_S = 10.0
_REPLY_TIMEOUT_S = 600.0  # until the next piece of a reply: a prompt can be long, and a queue too
_LONGEST = 50_000_000  # bytes of an answer that is read as a whole


class Served(msgspec.Struct, frozen=True):
    """A model that a server serves; `context` is its longest in tokens, where the server says, `root` the checkpoint
    behind the name."""

    id: str
    context: int | None = msgspec.field(default=None, name="max_model_len")
    root: str | None = None


class Counters(msgspec.Struct, frozen=True):
    """vLLM's counters since the server's start, all its engines together: tokens of replies, and speculative decoding.

    `accepted_at[i]` are the drafts that accepted more than i tokens: as many positions as it drafts per step.
    """

    drafts: int
    draft_tokens: int
    accepted_tokens: int
    accepted_at: tuple[int, ...]
    tokens: int

    def since(self, before: "Counters") -> "Counters":
        """What has been counted since `before`."""
        return Counters(
            self.drafts - before.drafts,
            self.draft_tokens - before.draft_tokens,
            self.accepted_tokens - before.accepted_tokens,
            tuple(now - then for now, then in zip(self.accepted_at, before.accepted_at, strict=True)),
            self.tokens - before.tokens,
        )


class ReplyCounts(msgspec.Struct, frozen=True):
    """What vLLM counted for one reply, where --per-request-spec-decode-metrics is set; with `detailed`, `accepted_by`
    has the accepted drafts of every step that verified some."""

    drafts: int = msgspec.field(name="num_spec_steps")
    draft_tokens: int = msgspec.field(name="num_draft_tokens")
    accepted_tokens: int = msgspec.field(name="num_accepted_draft_tokens")
    accepted_by: tuple[int, ...] = msgspec.field(name="per_step_accepted", default=())


class _Models(msgspec.Struct):
    data: list[Served]


class _Version(msgspec.Struct):
    version: str


class Server:
    """A server by its address, such as http://localhost:8000; what stands behind the port is kept, but for /v1."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        try:
            port = parts.port
        except ValueError:
            port = -1
        if parts.scheme not in ("http", "https") or not parts.hostname or port == -1 or parts.username:
            raise BadInputError(f"{url} is no server's address.", "Write it as http://host:8000.")
        self.url = url
        self.host = parts.hostname
        self.port = port or (443 if parts.scheme == "https" else 80)
        self._secure = parts.scheme == "https"
        self._prefix = parts.path.rstrip("/").removesuffix("/v1")

    @property
    def is_local(self) -> bool:
        """Whether it runs on this machine, as far as its address tells."""
        return self.host in ("localhost", "127.0.0.1", "::1")

    def is_healthy(self) -> bool:
        """Whether it answers."""
        try:
            return self._ask("GET", "/health", timeout=2.0)[0] == http.HTTPStatus.OK
        except PeagleError:
            return False

    def models(self) -> list[Served]:
        """What it serves. Raises `PeagleError` where nobody answers, `BadInputError` for what is no such server."""
        status, body = self._ask("GET", "/v1/models")
        self._check(status, body)
        try:
            return msgspec.json.decode(body, type=_Models, strict=False).data
        except msgspec.MsgspecError as error:
            raise BadInputError(
                f"What answers at {self.url} is no OpenAI-compatible server.", "Check the address."
            ) from error

    def version(self) -> str | None:
        """vLLM's version; None for another kind of server."""
        status, body = self._ask("GET", "/version")
        try:
            return msgspec.json.decode(body, type=_Version).version if status == http.HTTPStatus.OK else None
        except msgspec.MsgspecError:
            return None

    def counters(self) -> Counters | None:
        """Its counters; None where it has none, as without speculation."""
        status, body = self._ask("GET", "/metrics")
        return parse_counters(body.decode(errors="replace")) if status == http.HTTPStatus.OK else None

    def metrics(self) -> str:
        """What it counts, as Prometheus reads it. Raises `PeagleError` where it does not tell."""
        status, body = self._ask("GET", "/metrics")
        self._check(status, body)
        return body.decode(errors="replace")

    def reply(self, path: str, body: dict[str, Any]) -> None:
        """Have a reply made, and wait for its end. Raises as `stream` does."""
        status, answer = self._ask("POST", path, body, _REPLY_TIMEOUT_S)
        self._check(status, answer)

    def text_of(self, model: str, ids: list[int]) -> str | None:
        """Tokens as text, by the server's tokeniser; None where it does not offer that."""
        status, body = self._ask("POST", "/detokenize", {"model": model, "tokens": ids})
        with contextlib.suppress(msgspec.MsgspecError, KeyError, TypeError):
            return str(msgspec.json.decode(body)["prompt"]) if status == http.HTTPStatus.OK else None
        return None

    def stream(self, path: str, body: dict[str, Any], request_id: str) -> "Stream":
        """Begin a reply. Raises `BadInputError` for a request that is refused, `PeagleError` where nobody answers."""
        connection = self._connection(_REPLY_TIMEOUT_S)
        try:
            headers = {**self._headers(), "X-Request-Id": request_id, "Accept": "text/event-stream"}
            connection.request("POST", self._prefix + path, msgspec.json.encode(body), headers)
            response = connection.getresponse()
            if response.status != http.HTTPStatus.OK:
                self._check(response.status, response.read(_LONGEST))
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise self._silent(error) from error
        except BaseException:
            connection.close()
            raise
        return Stream(connection, response)

    def _ask(self, method: str, path: str, body: object = None, timeout: float = _TIMEOUT_S) -> tuple[int, bytes]:
        connection = self._connection(timeout)
        try:
            data = None if body is None else msgspec.json.encode(body)
            connection.request(method, self._prefix + path, data, self._headers())
            response = connection.getresponse()
            return response.status, response.read(_LONGEST)
        except (OSError, http.client.HTTPException) as error:
            raise self._silent(error) from error
        finally:
            connection.close()

    def _connection(self, timeout: float) -> http.client.HTTPConnection:
        if self._secure:
            return http.client.HTTPSConnection(
                self.host, self.port, timeout=timeout, context=ssl.create_default_context()
            )
        return http.client.HTTPConnection(self.host, self.port, timeout=timeout)

    def _headers(self) -> dict[str, str]:
        key = next((os.environ[name] for name in KEY_VARIABLES if os.environ.get(name)), None)
        return {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}

    def _silent(self, error: Exception) -> PeagleError:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return PeagleError(f"The server at {self.url} does not answer: {reason}.", "Is it running, and reachable?")

    def _check(self, status: int, body: bytes) -> None:
        """Raise for an answer that is none."""
        if status == http.HTTPStatus.OK:
            return
        if status in (http.HTTPStatus.UNAUTHORIZED, http.HTTPStatus.FORBIDDEN):
            raise BadInputError(f"The server at {self.url} wants an API key.", f"Set {KEY_VARIABLES[0]} to it.")
        if status == http.HTTPStatus.NOT_FOUND:
            raise BadInputError(f"The server at {self.url} does not offer what is asked of it.", "Check the address.")
        told = printable(_message(body))
        kind = BadInputError if status < http.HTTPStatus.INTERNAL_SERVER_ERROR else PeagleError
        raise kind(f"The server at {self.url} refuses ({status}): {told}")


class Stream:
    """A reply that streams; iterating yields what each event says. `close` may be called from another thread, and ends
    the reply on the server."""

    def __init__(self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> None:
        self._connection = connection
        self._response = response
        self._socket = connection.sock  # the connection forgets it when the server means to close

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The events, as JSON. Raises `PeagleError` when the server breaks off."""
        try:
            for line in self._response:
                data = line.strip()
                if data == b"data: [DONE]":
                    return
                if data.startswith(b"data:"):
                    yield msgspec.json.decode(data[5:], type=dict[str, Any])
        except (OSError, ValueError, AttributeError, http.client.HTTPException) as error:
            raise PeagleError("The server broke off in the middle of a reply.", "") from error
        raise PeagleError("The server broke off in the middle of a reply.", "")

    def close(self) -> None:
        """End the reply."""
        with contextlib.suppress(OSError):
            if self._socket is not None:
                self._socket.shutdown(socket.SHUT_RDWR)
        self._connection.close()


_SAMPLE = re.compile(r"^vllm:(?:spec_decode_num_)?(\w+?)_total(?:\{(.*)\})? ([0-9.eE+]+)$", re.MULTILINE)
_CPU_BLOCKS = re.compile(r'^vllm:cache_config_info\{(?:.*,)?block_size="128"', re.MULTILINE)
_POSITION = re.compile(r'position="(\d+)"')


def parse_counters(text: str) -> Counters | None:
    """The counters in what /metrics says; None where there are none."""
    totals: dict[str, int] = {}
    positions: dict[int, int] = {}
    for name, labels, value in _SAMPLE.findall(text):
        if name == "accepted_tokens_per_pos":
            if found := _POSITION.search(labels):
                positions[int(found[1])] = positions.get(int(found[1]), 0) + int(float(value))
        else:
            totals[name] = totals.get(name, 0) + int(float(value))
    if "drafts" not in totals:
        return None
    return Counters(
        totals["drafts"],
        totals.get("draft_tokens", 0),
        totals.get("accepted_tokens", 0),
        tuple(positions[i] for i in sorted(positions)),
        totals.get("generation_tokens", 0),
    )


def caches_as_on_cpus(text: str) -> bool:
    """Whether the context's cache has the blocks that vLLM chooses on a CPU, and hardly elsewhere, in what /metrics
    says: the only hint it gives."""
    return _CPU_BLOCKS.search(text) is not None


def generated_tokens(text: str) -> int:
    """The tokens of all replies, in what /metrics says."""
    return sum(int(float(value)) for name, _, value in _SAMPLE.findall(text) if name == "generation_tokens")


def _message(body: bytes) -> str:
    """What an error's body says."""
    with contextlib.suppress(msgspec.MsgspecError, KeyError, TypeError):
        answer = msgspec.json.decode(body)
        return str(answer["error"]["message"] if "error" in answer else answer["message"])
    return body[:200].decode(errors="replace") or "no reason is given"
