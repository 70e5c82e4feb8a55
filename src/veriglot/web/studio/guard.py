"""What holds for every request: where it came to, where it came from, how large it is, and what goes with each answer.

This stands outside of the framework, so that it holds for errors and files too.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders

from veriglot.web.studio.failures import CutOff, answer, refusal

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from veriglot.web.studio.settings import Settings

__all__ = ["Guard"]

_LOG = logging.getLogger("veriglot.studio")
_WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "manifest-src 'self'",
        "worker-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "object-src 'none'",
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


class Guard:
    """An ASGI app around another."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        self.settings = settings
        self._hosts = settings.known_hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse what cannot be right, pass on the rest."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        scope = {**scope, "root_path": self.settings.path}  # paths match with and without it, as proxies differ
        headers = Headers(scope=scope)
        sender = _Sender(send, scope, self.settings)
        refused = self._refused(scope, headers)
        if refused is not None:
            await refused(scope, receive, sender)
            return
        limited = _Limited(receive, self.settings.max_body, self.settings.body_seconds)
        try:
            await self.app(scope, limited, sender)
        except Exception:
            _LOG.exception("a request failed")
            await sender.instead(refusal(500, "internal", "Something went wrong here.", "Try again."), scope, receive)

    def _refused(self, scope: Scope, headers: Headers) -> Response | None:
        host = headers.get("host", "")
        if self._hosts is not None and _without_port(host) not in self._hosts:
            return refusal(
                400,
                "unknown_host",
                "This studio is not reached by this name.",
                "Whoever runs it sets its address with --base-url.",
            )
        if (said := headers.get("content-length")) is not None and (
            not (said.isascii() and said.isdigit()) or int(said[:18]) > self.settings.max_body
        ):
            return answer(_too_large(self.settings.max_body))
        if scope["method"] in _WRITES and not self._ours(scope, headers, host):
            return refusal(403, "foreign_origin", "This did not come from the studio's own page.", "Reload the page.")
        return None

    def _ours(self, scope: Scope, headers: Headers, host: str) -> bool:
        """Whether a browser says that our own page sent a request; what is no browser says nothing."""
        if headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
            return False
        origin = headers.get("origin")
        if origin is None:
            return True
        ours = {f"{scope.get('scheme', 'http')}://{host}".lower()}
        if self.settings.origin is not None:
            ours = {self.settings.origin}
            if _without_port(host) in {"localhost", "127.0.0.1", "[::1]"}:  # whoever runs it, on the machine itself
                ours.add(f"http://{host}".lower())
        return origin.lower() in ours


class _Limited:
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
            raise CutOff(408, "too_slow", "The request did not arrive in time.") from None
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
            if self._settings.base_url is not None and urlsplit(self._settings.base_url).scheme == "https":
                headers["strict-transport-security"] = f"max-age={_YEAR}"
        await self._send(message)

    async def instead(self, response: Any, scope: Scope, receive: Receive) -> None:
        """Another answer, where none has begun."""
        if not self.started:
            await response(scope, receive, self)


def _too_large(most: int) -> CutOff:
    return CutOff(413, "too_large", f"A request has at most {most:,} bytes.")


def _without_port(host: str) -> str:
    host = host.lower()
    return host[: host.find("]") + 1] if host.startswith("[") else host.partition(":")[0]
