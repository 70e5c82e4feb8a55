"""The studio's web app: routes, page files, guards, and the server."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import logging
import signal
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec
import uvicorn
from anyio.to_thread import current_default_thread_limiter
from fastapi import APIRouter, FastAPI, Request, Response
from starlette.datastructures import Headers, MutableHeaders

from veriglot.errors import VeriglotError
from veriglot.signatures import __version__
from veriglot.studio import adjudication, assignment, dashboard, exam, export, people, review, texts
from veriglot.studio.tables import NotFound
from veriglot.studio.web import (
    CallRefused,
    Rates,
    Router,
    error_response,
    install_handlers,
    json_response,
    record_schemas,
    require_lead,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from importlib.resources.abc import Traversable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from veriglot.studio.web import Settings, Studios

__all__ = ["serve"]


# What holds for every request: where it came to, where it came from, how large it is, and what goes with each answer.
#
# This stands outside of the framework, so that it holds for errors and files too.


_LOG = logging.getLogger("veriglot.studio")
_WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_OWN = ("script", "style", "font", "connect", "manifest", "worker")
_POLICY = "; ".join(
    (
        "default-src 'none'",
        *(f"{kind}-src 'self'" for kind in _OWN),
        "img-src 'self' data:",
        *(f"{kind} 'none'" for kind in ("base-uri", "form-action", "frame-ancestors", "object-src")),
    )
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # links hold keys; nobody else is told of them
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=(), payment=(), usb=()",
}
_YEAR = 31_536_000


class _Guard:
    """An ASGI app around another."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        self.settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse what cannot be right, pass on the rest."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        scope = {**scope, "root_path": self.settings.path}  # paths match with and without it, as proxies differ
        sender = _Sender(send, scope, self.settings)
        try:
            self._refuse(scope, Headers(scope=scope))
            limited = _LimitedBody(receive, self.settings.max_body, self.settings.body_seconds)
            await self.app(scope, limited, sender)
        except Exception as error:
            if sender.started:
                _LOG.exception("a request failed")
            else:
                await error_response(error)(scope, receive, sender)

    def _refuse(self, scope: Scope, headers: Headers) -> None:
        host, length = headers.get("host", ""), headers.get("content-length", "0")
        if not self.settings.knows_host(host):
            message = "This studio is not reached by this name."
            raise CallRefused(400, "unknown_host", message, "Whoever runs it sets its address with --public-url.")
        if not (length.isascii() and length.isdigit()) or int(length[:18]) > self.settings.max_body:
            raise _too_large(self.settings.max_body)
        # A browser says where a request came from; what is no browser says nothing.
        site, origin = headers.get("sec-fetch-site", "none"), headers.get("origin")
        ours = origin is None or self.settings.is_ours(origin, scope.get("scheme", "http"), host)
        if scope["method"] in _WRITES and not (ours and site in {"same-origin", "none"}):
            message = "This did not come from the studio's own page."
            raise CallRefused(403, "foreign_origin", message, "Reload the page.")


class _LimitedBody:
    """Receives a body, up to a size and for a time."""

    def __init__(self, receive: Receive, most: int, seconds: float) -> None:
        self._receive = receive
        self._most = self._left = most
        self._until = asyncio.get_running_loop().time() + seconds
        self._whole = False

    async def __call__(self) -> Message:
        if self._whole:  # the app waits for a disconnect, which has no limit
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._until):
                message = await self._receive()
        except TimeoutError:
            raise CallRefused(408, "too_slow", "The request did not arrive in time.", connection="close") from None
        self._left -= len(message.get("body", b""))
        if self._left < 0:
            raise _too_large(self._most)
        self._whole = not message.get("more_body", False)
        return message


class _Sender:
    """Sends an answer with the headers that go with each."""

    def __init__(self, send: Send, scope: Scope, settings: Settings) -> None:
        self._send = send
        self._scope = scope
        self._settings = settings
        self.started = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers[name] = value
            if self._scope["path"].removeprefix(self._settings.path).startswith("/api/"):
                headers.setdefault("cache-control", "no-store")
            if self._settings.is_https:
                headers["strict-transport-security"] = f"max-age={_YEAR}"
        await self._send(message)


def _too_large(most: int) -> CallRefused:
    return CallRefused(413, "too_large", f"A request has at most {most:,} bytes.", connection="close")


# The page's files, read once when the server starts and served by name: what is not in the list is not there.
#
# Their addresses hold a digest of all of them, so browsers keep them for good, and a new version is a new address.
# Modules import each other by relative paths, which lead to the same version.


_PAGES = (
    "/",
    "/join/{rest:path}",
    "/mark",
    "/mark/{rest:path}",
    "/exam",
    "/exam/{rest:path}",
    "/guidelines",
    "/lead",
    "/lead/{rest:path}",
)
_TYPES = {
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
    "md": "text/plain; charset=utf-8",
}
_MIN_GZIP = 512  # bytes


class _File(NamedTuple):
    data: bytes
    packed: bytes | None
    type: str


class _PageFiles:
    """All files of the page, with a digest of them and their names."""

    def __init__(self, settings: Settings) -> None:
        contents = dict(_walk(files("veriglot.studio") / "page"))
        hashed = hashlib.sha256(settings.path.encode())
        for name, data in sorted(contents.items()):
            hashed.update(f"{name}\0{len(data)}\0".encode() + data)
        self.digest = hashed.hexdigest()[:16]
        prefix = f"{settings.path}/page/{self.digest}/"
        self.index = contents.pop("index.html").replace(b'"/page/', f'"{prefix}'.encode())
        self.files = {name: _file(name, data) for name, data in contents.items()}


def _walk(folder: Traversable, before: str = "") -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        if entry.name.startswith((".", "__")):
            continue
        if entry.is_dir():
            yield from _walk(entry, f"{before}{entry.name}/")
        else:
            yield before + entry.name, entry.read_bytes()


def _file(name: str, data: bytes) -> _File:
    packed = gzip.compress(data, mtime=0) if len(data) >= _MIN_GZIP else data
    type_ = _TYPES.get(name.rpartition(".")[2], "application/octet-stream")
    return _File(data, packed if len(packed) < len(data) else None, type_)


page_router = APIRouter(include_in_schema=False)


@page_router.get("/page/{digest}/{name:path}")
def file(request: Request, digest: str, name: str) -> Response:
    """A file of the page."""
    page: _PageFiles = request.app.state.page
    entry = page.files.get(name)
    if entry is None:
        raise NotFound("file")
    current = digest == page.digest  # a page that was open during an update asks under the old address
    headers = {
        "cache-control": "public, max-age=31536000, immutable" if current else "no-cache",
        "vary": "accept-encoding",
    }
    if entry.packed is not None and "gzip" in request.headers.get("accept-encoding", ""):
        return Response(entry.packed, 200, {**headers, "content-encoding": "gzip"}, media_type=entry.type)
    return Response(entry.data, 200, headers, media_type=entry.type)


def _index(request: Request) -> Response:
    page: _PageFiles = request.app.state.page
    return Response(page.index, 200, {"cache-control": "no-cache"}, media_type="text/html; charset=utf-8")


for _path in _PAGES:
    page_router.add_api_route(_path, _index, methods=["GET", "HEAD"])


@page_router.get("/api/openapi.json")
def open_api(request: Request) -> Response:
    """The API described: for leads, and for all where the operator allows it."""
    if not request.app.state.settings.open_api:
        require_lead(request)
    return json_response(request.app.openapi())


class Health(msgspec.Struct, frozen=True):
    """Whether the server answers and reaches its databases."""

    status: Literal["ok"]
    version: str


health_router = Router()


@health_router.call("GET", "/api/health")
def health(request: Request) -> Health:
    """Whether the server answers and reaches its databases."""
    request.app.state.studios.check()
    return Health("ok", __version__)


_RULES = (people, assignment, exam, adjudication, review, dashboard, export, texts)
_PARTS = (*(rules.router for rules in _RULES), health_router, page_router)
_THREADS = 16  # calls in work at once: each holds the database or the interpreter, so more would only wait


def _make_app(studios: Studios, settings: Settings) -> FastAPI:
    app = FastAPI(
        title="Veriglot Studio",
        version=__version__,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=_lifespan,
    )
    app.state.settings = settings
    app.state.studios = studios
    app.state.rates = Rates(settings.rates)
    app.state.page = _PageFiles(settings)
    install_handlers(app)
    for part in _PARTS:
        app.include_router(part)
    app.openapi()["components"] = {"schemas": record_schemas()}
    return app


@asynccontextmanager
async def _lifespan(_: FastAPI) -> AsyncIterator[None]:
    current_default_thread_limiter().total_tokens = _THREADS
    yield


# Starting and stopping: uvicorn with settings of our own.


_KEEP_ALIVE = 75  # seconds; longer than the usual 60 of a proxy, which would else write into a closing connection
_SHUTDOWN_SECONDS = 20  # seconds that running calls get when it stops
_MAX_CONNECTIONS = 1000  # connections; beyond them it answers 503 rather than slow down for all


def server_of(
    studios: Studios, settings: Settings, *, host: str, port: int, access_log: bool = False
) -> uvicorn.Server:
    """A server that is not running yet."""
    config = uvicorn.Config(
        _Guard(_make_app(studios, settings), settings),
        host=host,
        port=port,
        http="h11",
        ws="none",
        lifespan="on",
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=list(settings.trusted_proxies) or None,
        server_header=False,
        access_log=access_log,
        log_level="info" if access_log else "warning",
        limit_concurrency=_MAX_CONNECTIONS,
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        h11_max_incomplete_event_size=32_768,
    )
    return uvicorn.Server(config)


def serve(studios: Studios, settings: Settings, *, host: str, port: int, access_log: bool = False) -> None:
    """Serve until it is told to stop (SIGINT or SIGTERM); calls in work are finished first.

    Raises:
        VeriglotError: the address cannot be listened at.
    """
    server = server_of(studios, settings, host=host, port=port, access_log=access_log)
    # uvicorn raises the signal again once it has stopped; without this, a clean end would look like a killed process
    signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        server.run()
    except SystemExit as error:  # how uvicorn says that it could not begin, after it logged why
        raise VeriglotError(
            f"The server could not begin at {host}:{port}.", remedy="Is the port free? Choose another with --port."
        ) from error
    finally:
        studios.close()
