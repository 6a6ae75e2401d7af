"""`peagle chat --serve`: the chat screen in a browser on this machine.

textual-serve runs a chat of its own for each tab and carries its terminal to the page. Ours in place of textual-serve's
are the page, which loads nothing from elsewhere, and the door: the server listens on the loopback address alone, and
answers nobody who does not know the token in the address that is printed, be it another user of this machine or a page
of another site.
"""

import asyncio
import secrets
import shlex
import signal
import socket
import sys
import tempfile
from collections.abc import Awaitable, Callable
from importlib import resources
from pathlib import Path

import msgspec
import typer

from peagle_cli.errors import BadInputError
from peagle_cli.tui.options import ChatOptions

try:
    import textual_serve
    from aiohttp import web
    from textual_serve.server import Server
except ModuleNotFoundError as error:
    raise BadInputError(
        "The chat in a browser needs textual-serve, which is not installed.", "Install peagle[serve]."
    ) from error

HOST = "127.0.0.1"
_CLOSING_S = 0.5  # for a tab to hear that it is over
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; font-src 'self'; img-src 'self' data:; script-src 'self' 'unsafe-inline'; "
        "style-src 'self' 'unsafe-inline'"
    ),
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def serve(options: ChatOptions, port: int) -> None:
    """Serve chats that begin with `options` on `port`, 0 for one that is free, until Ctrl+C.

    Raises `BadInputError` for a port that cannot be had, `KeyboardInterrupt` in the end.
    """
    with _listen(port) as listening, tempfile.NamedTemporaryFile(prefix="peagle-", suffix=".json") as kept:
        kept.write(msgspec.json.encode(options))
        kept.flush()
        asyncio.run(_run(_application(Path(kept.name)), listening))


def _listen(port: int) -> socket.socket:
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((HOST, port))
    except OSError as error:
        listening.close()
        raise BadInputError(
            f"Port {port} cannot be listened on: {error.strerror}.", "Give another with --port; 0 is any that is free."
        ) from error
    return listening


_TOKEN = web.AppKey("token", str)


def _application(options: Path) -> web.Application:
    """The page, the script that draws the terminal, and the socket behind it."""
    command = shlex.join([sys.executable, "-m", "peagle_cli.tui.served", str(options)])
    application = web.Application(middlewares=[_only_who_knows])
    application[_TOKEN] = secrets.token_urlsafe(24)
    static = Path(textual_serve.__path__[0]) / "static"
    application.add_routes(
        [
            web.get("/", _page),
            web.get("/ws", Server(command, HOST).handle_websocket),
            web.static("/static", static),
        ]
    )
    return application


async def _run(application: web.Application, listening: socket.socket) -> None:
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, signal.raise_signal, signal.SIGINT)
    runner = web.AppRunner(application, shutdown_timeout=_CLOSING_S, access_log=None)
    await runner.setup()
    try:
        await web.SockSite(runner, listening).start()
        port = listening.getsockname()[1]
        typer.echo("Each tab is a chat of its own, with its own engine. Ctrl+C ends them all.", err=True)
        typer.echo(f"http://{HOST}:{port}/?token={application[_TOKEN]}")
        sys.stdout.flush()
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()


async def _page(request: web.Request) -> web.Response:
    """The page. It also gets the token as a cookie, which a browser shows to no other site."""
    page = resources.files("peagle_cli.cli").joinpath("serve.html").read_text(encoding="utf-8")
    response = web.Response(text=page, content_type="text/html", headers=_HEADERS)
    response.set_cookie(_cookie(request), request.app[_TOKEN], httponly=True, samesite="Strict")
    return response


@web.middleware
async def _only_who_knows(request: web.Request, handler: _Handler) -> web.StreamResponse:
    """Refuse whoever does not know the token."""
    shown = request.query.get("token") or request.cookies.get(_cookie(request), "")
    if not secrets.compare_digest(shown.encode(), request.app[_TOKEN].encode()):
        raise web.HTTPForbidden(text="Open the whole address that peagle printed, with its token.")
    return await handler(request)


def _cookie(request: web.Request) -> str:
    """Its name: cookies do not know ports, and there may be several servers."""
    return f"peagle-{request.url.port}"
