"""What our servers share: who may call and how, sizes and times of requests, errors as JSON, files of pages, uvicorn.

Nothing about proxies, hosts or schemes is believed that the settings do not say.
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
from veriglot.plugins import packaged
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
        host, port: where it listens.
        base_url: where people reach it, such as `https://studio.example.org` or one with a path below a host; None
            where they reach it as it listens. Links, cookies and what counts as our own origin follow it.
        hosts: further names that requests may come to. Without them and a `base_url`, a server that listens to the
            network takes requests to any name, another those to loopback's names.
        trusted_proxies: addresses or networks whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed; empty for
            none.
        origins: pages of other origins that may call from a browser; empty for none.
        max_body: the most bytes of a request.
        body_seconds: how long the head of a request may take to arrive, how long its body, and how long a reader may
            take nothing of an answer.
        shutdown_seconds: how long calls in work get when it stops.
        access_log: whether every request is logged, by its path and never by its text.
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
        """Whether it listens to this machine alone."""
        return self.host in {"127.0.0.1", "localhost", "::1"}

    @property
    def address(self) -> str:
        """Where people reach it."""
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
        """Whether people reach the server by HTTPS, as far as `base_url` says."""
        return (self.origin or "").startswith("https:")

    @property
    def path(self) -> str:
        """What stands before every path: empty, or `/below/a/host`."""
        return "" if self.base_url is None else urlsplit(self.base_url).path.rstrip("/")

    def knows_host(self, host: str) -> bool:
        """Whether requests may come to a host, whatever its port."""
        if self.base_url is None and not self.hosts and not self.is_local:
            return True
        named = {name.lower() for name in (self.host, *self.hosts)} | _LOOPBACK
        if self.base_url is not None:
            named.add(_without_port(urlsplit(self.base_url).netloc))
        return _without_port(host) in named

    def is_ours(self, origin: str, scheme: str, host: str) -> bool:
        """Whether a request to a host came from a page of our own."""
        if self.origin is None:
            return origin.lower() == f"{scheme}://{host}".lower()
        local = _without_port(host) in _LOOPBACK  # whoever runs it, on the machine itself
        return origin.lower() == self.origin or (local and origin.lower() == f"http://{host}".lower())


def _without_port(netloc: str) -> str:
    """A host without its port; an IPv6 address keeps its brackets."""
    netloc = netloc.lower()
    return netloc[: netloc.find("]") + 1] if netloc.startswith("[") else netloc.partition(":")[0]


# What went wrong, as JSON, never how the program looks inside.


class CallRefused(UsageError):  # noqa: N818  # reads as what happened
    """A call that is refused before any rule looks at it, with the status and the code of the answer, and headers."""

    def __init__(self, status: int, code: str, message: str, remedy: str = "", **headers: str) -> None:
        super().__init__(message, remedy)
        self.status = status
        self.code = code
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


class ErrorView(Record, omit_defaults=True):
    """What went wrong: a word for programs, what happened, what to do, and the field it is about."""

    code: str
    message: str
    remedy: str
    field: str | None = None


class ErrorAnswer(Record):
    """The answer to a call that failed."""

    error: ErrorView


def json_response(data: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """An answer in JSON; what stands in it is data for every reader, whatever it says."""
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
    """The answer to a call that failed; `more` stands beside the error."""
    body = {"error": ErrorView(code, message, remedy, field), **more}
    return json_response(body, status, {"cache-control": "no-store", **(headers or {})})


def internal_error(status: int, code: str, message: str, log: Callable[[str], None]) -> Response:
    """The answer to a fault of ours: the details go to `log`, under a number that the user can pass on."""
    number = uuid.uuid4().hex[:12]
    log(number)
    return error_json(status, code, message, f"Try again; if it stays, tell whoever runs this: {number}.")


# What holds for every request: where it came to, where it came from, how large it is, and what goes with each answer.
#
# This stands outside of the framework, so that it holds for errors and files too.


_DISCARDED_BYTES, _DISCARD_SECONDS = 1_000_000, 1.0  # at most, of a body that is refused before it is read
_WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_HEADERS = packaged(__package__, "headers.toml", dict[str, str])


@dataclass(eq=False)
class Guard:
    """An ASGI app around another.

    Args:
        app: the other one.
        settings: whom it answers.
        respond: the answer to an error that reaches the guard.
        api: the beginning of the paths whose answers no cache keeps.
        larger: the most bytes of a request to some paths and its seconds, where those of `settings` are too few.
    """

    app: ASGIApp
    settings: ServerSettings
    respond: Callable[[Exception], Response]
    api: str
    larger: Mapping[str, tuple[int, float]] = field(default_factory=dict)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse what cannot be right, pass on the rest."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        scope = {**scope, "root_path": self.settings.path}  # paths match with and without it, as proxies differ
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
        # A browser says where a request came from; what is no browser says nothing.
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
        """The headers that go with each answer."""
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
            raise CallRefused(
                408, "too_slow", "The request did not arrive in time.", "Send it in smaller calls.", connection="close"
            ) from None
        self._left -= len(message.get("body", b""))
        if self._left < 0:
            raise _too_large(self._most)
        self._whole = not message.get("more_body", False)
        return message

    async def discard(self) -> None:
        """Read on for a moment: a connection closed on unread bytes is reset, and the answer is lost with it."""
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


# A page's files, read once when the server starts and served by name: what is not in the list is not there.
#
# Their addresses hold a digest of all of them, so browsers keep them for good, and a new version is a new address.
# Modules import each other by relative paths, which lead to the same version.


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
    """All files of a page by name, with a digest of them; `index.html` names them as `/page/NAME`."""

    def __init__(self, contents: Mapping[str, bytes], path: str) -> None:
        hashed = hashlib.sha256(path.encode())
        for name, data in sorted(contents.items()):
            hashed.update(f"{name}\0{len(data)}\0".encode() + data)
        self.digest = hashed.hexdigest()[:16]
        prefix = f"{path}/page/{self.digest}/"
        self.index = contents["index.html"].replace(b'"/page/', f'"{prefix}'.encode())
        self.files = {name: _file(name, data) for name, data in contents.items() if name != "index.html"}

    def response(self, digest: str, name: str, encodings: str) -> Response | None:
        """The answer to a call for a file; None where there is none of that name."""
        entry = self.files.get(name)
        if entry is None:
            return None
        current = digest == self.digest  # a page that was open during an update asks under the old address
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
    """The files of a folder and those below it, by their paths."""
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


# Starting and stopping: uvicorn with settings of our own.


_KEEP_ALIVE = 75  # seconds; longer than the usual 60 of a proxy, which would else write into a closing connection
_MAX_CONNECTIONS = 1000  # connections; beyond them it answers 503 rather than slow down for all


class _Protocol(H11Protocol):
    """HTTP with a limit on how long a head may take to arrive and a reader to read; uvicorn has neither."""

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
        elif self._head is None:  # of the next head, or of the rest of a body that nobody wants
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
    """A server of an app that is not running yet."""
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
    """Log a request by its path alone: a query may hold text, or a key."""
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
    """Say why an address cannot be listened at."""
    try:
        yield
    except (OSError, UnicodeError) as error:  # the second: a name with a part that is empty or too long
        code = error.errno if isinstance(error, OSError) and not isinstance(error, socket.gaierror) else None
        reason = "there is no such host" if code is None else _REFUSED.get(code, os.strerror(code).lower())
        raise VeriglotError(
            f"The server cannot listen at {settings.host}:{settings.port}: {reason}.",
            "Choose another with --port, or give --host an address of this machine; 0.0.0.0 is for the network.",
        ) from error


def _bound(settings: ServerSettings, stack: ExitStack) -> Iterator[socket.socket]:
    """Sockets that hold the address, and do not listen yet."""
    for family, kind, protocol, _, address in socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM):
        own = stack.enter_context(socket.socket(family, kind, protocol))
        if os.name == "posix":  # as asyncio does it: a port that was just left can be taken
            own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            own.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        own.bind(address)
        yield own


def run_server(
    settings: ServerSettings, start: Callable[[ExitStack], uvicorn.Server], announce: Callable[[], None]
) -> None:
    """Serve until it is told to stop (SIGINT or SIGTERM); calls in work are finished first.

    Args:
        settings: have the address, which is taken before anything is loaded.
        start: loads what answers, and puts on the stack what ends it.
        announce: called once the server listens.

    Raises:
        VeriglotError: the address cannot be listened at, or the server does not start.
    """
    # uvicorn raises the signal again once it has stopped; without this, a clean end would look like a killed process
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
        except SystemExit as error:  # how uvicorn ends if the app does not start, which it has logged
            raise VeriglotError("The server could not start.", "The lines above say why.") from error
