"""Shared by our servers: access control, limits of requests, errors as JSON, files of pages, uvicorn.

Information about proxies, hosts or schemes is trusted only if the settings say so.
"""

from __future__ import annotations

import asyncio
import errno
import gzip
import hashlib
import logging
import os
import signal
import socket
import uuid
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import msgspec
import uvicorn
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from uvicorn.protocols.http.h11_impl import H11Protocol

from veriglot.errors import UsageError, VeriglotError
from veriglot.http.session import checked_address
from veriglot.plugins import read_package_data
from veriglot.records import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from importlib.resources.abc import Traversable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = [
    "CallRefused",
    "ErrorAnswer",
    "ErrorView",
    "Guard",
    "PageFiles",
    "ServerSettings",
    "error_json",
    "files_below",
    "internal_error",
    "json_response",
    "run_server",
    "server_of",
]


_LOG = logging.getLogger("veriglot.http")
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})


@dataclass(frozen=True)
class ServerSettings:
    """Settings of a server.

    Attributes:
        host, port: address to listen at.
        base_url: public address, such as `https://studio.example.org` or one with a path; None if it is the address to
            listen at. Links, cookies and the check of our own origin use it.
        hosts: further allowed host names. Without them and a `base_url`, a server on the network accepts requests to
            any name, a local one only to loopback's names.
        trusted_proxies: addresses or networks whose `X-Forwarded-For` and `X-Forwarded-Proto` are trusted; empty for
            none.
        origins: other origins whose pages may call from a browser; empty for none.
        max_body: maximum bytes of a request.
        body_seconds: time limit for the head of a request, for its body, and for a reader who takes nothing of an
            answer.
        shutdown_seconds: time limit for running calls at a shutdown.
        access_log: whether to log every request, by its path and never with its text.
    """

    host: str = "127.0.0.1"
    port: int = 0
    base_url: str | None = None
    hosts: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    max_body: int = 2_000_000
    body_seconds: float = 30.0
    shutdown_seconds: int = 20
    access_log: bool = False

    def __post_init__(self) -> None:
        if self.base_url is not None:
            checked_address(self.base_url)

    @property
    def is_local(self) -> bool:
        """Whether it listens only to this machine."""
        return self.host in {"127.0.0.1", "localhost", "::1"}

    @property
    def address(self) -> str:
        """The public address."""
        return self.base_url or f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    @property
    def origin(self) -> str | None:
        """Scheme, host and port of `base_url`."""
        if self.base_url is None:
            return None
        parts = urlsplit(self.base_url)
        return f"{parts.scheme}://{parts.netloc}".lower()

    @property
    def is_https(self) -> bool:
        """Whether the public address is HTTPS, according to `base_url`."""
        return (self.origin or "").startswith("https:")

    @property
    def path(self) -> str:
        """Prefix of every path: empty, or `/below/a/host`."""
        return "" if self.base_url is None else urlsplit(self.base_url).path.rstrip("/")

    def knows_host(self, host: str) -> bool:
        """Whether requests to a host are allowed, with any port."""
        if self.base_url is None and not self.hosts and not self.is_local:
            return True
        named = {name.lower() for name in (self.host, *self.hosts)} | _LOOPBACK
        if self.base_url is not None:
            named.add(_without_port(urlsplit(self.base_url).netloc))
        return _without_port(host) in named

    def is_ours(self, origin: str, scheme: str, host: str) -> bool:
        """Whether a request to a host came from our own page."""
        if self.origin is None:
            return origin.lower() == f"{scheme}://{host}".lower()
        local = _without_port(host) in _LOOPBACK  # the operator, on the same machine
        return origin.lower() == self.origin or (local and origin.lower() == f"http://{host}".lower())


def _without_port(netloc: str) -> str:
    """A host without its port; an IPv6 address keeps its brackets."""
    netloc = netloc.lower()
    return netloc[: netloc.find("]") + 1] if netloc.startswith("[") else netloc.partition(":")[0]


# Errors as JSON, without internal details.


class CallRefused(UsageError):  # noqa: N818  # named after the event
    """A call that is refused before the application handles it, with status, code and headers of the answer."""

    def __init__(self, status: int, code: str, message: str, remedy: str = "", **headers: str) -> None:
        super().__init__(message, remedy)
        self.status = status
        self.code = code
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


class ErrorView(Record, omit_defaults=True):
    """An error: a code for programs, a message, a remedy, and the field it is about."""

    code: str
    message: str
    remedy: str
    field: str | None = None


class ErrorAnswer(Record):
    """The answer to a failed call."""

    error: ErrorView


def json_response(data: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """An answer in JSON; its content is always treated as data."""
    return Response(msgspec.json.encode(data), status, headers, media_type="application/json")


def error_json(
    status: int,
    code: str,
    message: str,
    remedy: str = "",
    *,
    field: str | None = None,
    headers: Mapping[str, str] | None = None,
    **more: Any,
) -> Response:
    """The answer to a failed call; `more` is added beside the error."""
    body = {"error": ErrorView(code, message, remedy, field), **more}
    return json_response(body, status, {"cache-control": "no-store", **(headers or {})})


def internal_error(status: int, code: str, message: str, log: Callable[[str], None]) -> Response:
    """The answer to an internal error: the details go to `log`, with a number that the user can report."""
    number = uuid.uuid4().hex[:12]
    log(number)
    return error_json(status, code, message, f"Try again; if it stays, tell whoever runs this: {number}.")


# For every request: checks of host, origin and size, and headers of the answer.
#
# This is outside of the framework, so that it applies to errors and files too.


_DISCARDED_BYTES, _DISCARD_SECONDS = 1_000_000, 1.0  # maximum of a refused body that is still read
_WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_HEADERS = read_package_data(__package__, "headers.toml", dict[str, str])


@dataclass(eq=False)
class Guard:
    """ASGI middleware.

    Args:
        app: the wrapped app.
        settings: of the server.
        respond: the answer to an error that reaches the guard.
        api: prefix of the paths whose answers must not be cached.
        larger: maximum bytes and seconds of requests to some paths, if those of `settings` are too low.
    """

    app: ASGIApp
    settings: ServerSettings
    respond: Callable[[Exception], Response]
    api: str
    larger: Mapping[str, tuple[int, float]] = field(default_factory=dict)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse invalid requests, pass on the rest."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        scope = {**scope, "root_path": self.settings.path}  # paths match with and without it, because proxies differ
        headers = Headers(scope=scope)
        trusted = headers.get("origin") if headers.get("origin") in self.settings.origins else None
        started = False
        limited = _LimitedBody(receive, *self._most(scope))

        async def sender(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                self._add_headers(message, scope["path"], trusted)
            await send(message)

        try:
            self._refuse(scope, headers, trusted)
            if trusted and scope["method"] == "OPTIONS":
                await Response(status_code=204)(scope, receive, sender)
                return
            await self.app(scope, limited, sender)
        except Exception as error:
            if started:
                _LOG.error("a request failed after its answer began: %s", type(error).__name__)
            else:
                await limited.discard()
                await self.respond(error)(scope, receive, sender)

    def _most(self, scope: Scope) -> tuple[int, float]:
        usual = self.settings.max_body, self.settings.body_seconds
        return self.larger.get(scope["path"].removeprefix(self.settings.path), usual)

    def _refuse(self, scope: Scope, headers: Headers, trusted: str | None) -> None:
        host, length = headers.get("host", ""), headers.get("content-length", "0")
        most, _ = self._most(scope)
        if not self.settings.knows_host(host):
            raise CallRefused(
                400,
                "unknown_host",
                "This server is not reached by this name.",
                "Whoever runs it sets its address as its public URL, or adds it to `hosts`.",
            )
        if not (length.isascii() and length.isdigit()) or int(length[:18]) > most:
            raise _too_large(most)
        if headers.get("content-encoding", "identity").lower() != "identity":
            raise CallRefused(
                415,
                "malformed",
                "Compressed bodies are not read here.",
                "Send it without Content-Encoding.",
                connection="close",
            )
        # A browser sends the origin of a request; other clients do not.
        site, origin = headers.get("sec-fetch-site", "none"), headers.get("origin")
        ours = origin is None or self.settings.is_ours(origin, scope.get("scheme", "http"), host)
        if scope["method"] in _WRITES and not trusted and not (ours and site in {"same-origin", "none"}):
            raise CallRefused(
                403,
                "foreign_origin",
                "This did not come from this server's own page.",
                "Reload the page. Whoever runs this can let other sites call (origins).",
            )

    def _add_headers(self, message: Message, path: str, trusted: str | None) -> None:
        """Add the headers of each answer."""
        headers = MutableHeaders(scope=message)
        headers.update(_HEADERS)
        if path.removeprefix(self.settings.path).startswith(self.api):
            headers.setdefault("cache-control", "no-store")
        if self.settings.is_https:
            headers["strict-transport-security"] = "max-age=31536000"
        if self.settings.origins:
            headers.add_vary_header("origin")
        if trusted:
            headers["access-control-allow-origin"] = trusted
            headers["access-control-allow-headers"] = "authorization, content-type, x-api-key"
            headers["access-control-expose-headers"] = "retry-after"
            headers["cross-origin-resource-policy"] = "cross-origin"


class _LimitedBody:
    """Receives a body, with limits of size and time."""

    def __init__(self, receive: Receive, most: int, seconds: float) -> None:
        self._receive = receive
        self._most = self._left = most
        self._until = asyncio.get_running_loop().time() + seconds
        self._whole = False

    async def __call__(self) -> Message:
        if self._whole:  # the app waits for a disconnect, without limit
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._until):
                message = await self._receive()
        except TimeoutError:
            raise CallRefused(
                408, "too_slow", "The request did not arrive in time.", "Send it in smaller calls.", connection="close"
            ) from None
        self._left -= len(message.get("body", b""))
        if self._left < 0:
            raise _too_large(self._most)
        self._whole = not message.get("more_body", False)
        return message

    async def discard(self) -> None:
        """Read on for a moment: closing a connection with unread bytes resets it, and the answer is lost."""
        unread = _DISCARDED_BYTES
        with suppress(TimeoutError):
            async with asyncio.timeout(_DISCARD_SECONDS):
                while unread > 0 and not self._whole:
                    message = await self._receive()
                    unread -= len(message.get("body", b""))
                    self._whole = not message.get("more_body", False)


def _too_large(most: int) -> CallRefused:
    message = f"A request has at most {most:,} bytes."
    return CallRefused(413, "too_large", message, "Send less at a time.", connection="close")


# Files of a page, read once at the start and served by name: other files are not found.
#
# Their addresses contain a digest of all of them, so browsers cache them for good, and a new version has new addresses.
# Modules import each other by relative paths, so they stay within one version.


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


class PageFiles:
    """All files of a page by name, with their digest; `index.html` refers to them as `/page/NAME`."""

    def __init__(self, contents: Mapping[str, bytes], path: str) -> None:
        hashed = hashlib.sha256(path.encode())
        for name, data in sorted(contents.items()):
            hashed.update(f"{name}\0{len(data)}\0".encode() + data)
        self.digest = hashed.hexdigest()[:16]
        prefix = f"{path}/page/{self.digest}/"
        self.index = contents["index.html"].replace(b'"/page/', f'"{prefix}'.encode())
        self.files = {name: _file(name, data) for name, data in contents.items() if name != "index.html"}

    def response(self, digest: str, name: str, encodings: str) -> Response | None:
        """The answer to a call for a file; None if there is no such file."""
        entry = self.files.get(name)
        if entry is None:
            return None
        current = digest == self.digest  # a page that was open during an update uses old addresses
        headers = {
            "cache-control": "public, max-age=31536000, immutable" if current else "no-cache",
            "vary": "accept-encoding",
        }
        if entry.packed is not None and "gzip" in encodings:
            return Response(entry.packed, 200, {**headers, "content-encoding": "gzip"}, media_type=entry.type)
        return Response(entry.data, 200, headers, media_type=entry.type)

    def index_response(self) -> Response:
        """The page itself."""
        return Response(self.index, 200, {"cache-control": "no-cache"}, media_type="text/html; charset=utf-8")


def files_below(folder: Traversable, before: str = "") -> Iterator[tuple[str, bytes]]:
    """The files of a folder and its subfolders, by path."""
    for entry in folder.iterdir():
        if entry.name.startswith((".", "__")):
            continue
        if entry.is_dir():
            yield from files_below(entry, f"{before}{entry.name}/")
        else:
            yield before + entry.name, entry.read_bytes()


def _file(name: str, data: bytes) -> _File:
    packed = gzip.compress(data, mtime=0) if len(data) >= _MIN_GZIP else data
    type_ = _TYPES.get(name.rpartition(".")[2], "application/octet-stream")
    return _File(data, packed if len(packed) < len(data) else None, type_)


# Starting and stopping uvicorn with our settings.


_KEEP_ALIVE = 75  # seconds; longer than a proxy's usual 60, which would otherwise write to a closing connection
_MAX_CONNECTIONS = 1000  # beyond it answers 503 instead of slowing down for all


class _Protocol(H11Protocol):
    """HTTP with time limits for receiving a head and for a reader of an answer; uvicorn has neither."""

    seconds: float
    _head: asyncio.TimerHandle | None = None
    _reading: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._head = self.loop.call_later(self.seconds, transport.abort)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            _cancel(self._head)
            self._head = None
        elif self._head is None:  # of the next head, or of the rest of a refused body
            self._head = self.loop.call_later(self.seconds, self.transport.abort)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._reading = self.loop.call_later(self.seconds, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        _cancel(self._reading)

    def connection_lost(self, exc: Exception | None) -> None:
        _cancel(self._head)
        _cancel(self._reading)
        super().connection_lost(exc)


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()


def server_of(app: ASGIApp, settings: ServerSettings) -> uvicorn.Server:
    """A server of an app, not yet running."""
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        http=type("Protocol", (_Protocol,), {"seconds": settings.body_seconds}),
        ws="none",
        lifespan="on",
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=list(settings.trusted_proxies) or None,
        server_header=False,
        access_log=settings.access_log,
        log_level="info" if settings.access_log else "warning",
        limit_concurrency=_MAX_CONNECTIONS,
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=settings.shutdown_seconds,
        h11_max_incomplete_event_size=32_768,
    )
    logging.getLogger("uvicorn.access").addFilter(_drop_query)
    logging.getLogger("uvicorn.error").addFilter(lambda record: not isinstance(record.msg, OSError))  # it is raised
    return uvicorn.Server(config)


def _drop_query(record: logging.LogRecord) -> bool:
    """Log only the path of a request: a query may contain texts or keys."""
    if isinstance(record.args, tuple):  # client, method, path with query, version, status
        record.args = tuple(part.partition("?")[0] if isinstance(part, str) else part for part in record.args)
    return True


_REFUSED = {
    errno.EADDRINUSE: "another program listens there",
    errno.EADDRNOTAVAIL: "it is no address of this machine",
    errno.EACCES: "you are not allowed to use that port",
}


@contextmanager
def _refusal(settings: ServerSettings) -> Iterator[None]:
    """Raise a clear error if the server cannot listen at its address."""
    try:
        yield
    except (OSError, UnicodeError) as error:  # UnicodeError: a host name with an empty or too long part
        code = error.errno if isinstance(error, OSError) and not isinstance(error, socket.gaierror) else None
        reason = "there is no such host" if code is None else _REFUSED.get(code, os.strerror(code).lower())
        raise VeriglotError(
            f"The server cannot listen at {settings.host}:{settings.port}: {reason}.",
            "Choose another with --port, or give --host an address of this machine; 0.0.0.0 is for the network.",
        ) from error


def _bound(settings: ServerSettings, stack: ExitStack) -> Iterator[socket.socket]:
    """Sockets bound to the address, not listening yet."""
    for family, kind, protocol, _, address in socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM):
        own = stack.enter_context(socket.socket(family, kind, protocol))
        if os.name == "posix":  # as in asyncio: reuse a port that was just released
            own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            own.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        own.bind(address)
        yield own


def run_server(
    settings: ServerSettings, start: Callable[[ExitStack], uvicorn.Server], announce: Callable[[], None]
) -> None:
    """Serve until SIGINT or SIGTERM; running calls are finished first.

    Args:
        settings: with the address, which is bound before anything is loaded.
        start: loads the application, and registers its cleanup on the stack.
        announce: called once the server listens.

    Raises:
        VeriglotError: the server cannot listen at the address, or does not start.
    """
    # uvicorn raises the signal again after it stopped; without this, a clean end would look like a killed process
    signal.signal(signal.SIGTERM, lambda *_: None)
    with ExitStack() as stack:
        with _refusal(settings):
            sockets = list(_bound(settings, stack))
        server = start(stack)
        with _refusal(settings):
            for own in sockets:
                own.listen()
        announce()
        try:
            server.run(sockets)
        except SystemExit as error:  # raised by uvicorn if the app does not start, which it has logged
            raise VeriglotError("The server could not start.", "The lines above say why.") from error
