"""A real web server on loopback that serves bytes: with ranges, as a package index, as a hub of models, and badly.

with FileServer() as server:
    server.put("/a.bin", b"...")
    server.cut["/a.bin"] = [1000, 2000]  # the first answer breaks off after 1,000 bytes, the second after 2,000
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import defaultdict
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from typing import Self

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class Asked:
    """A request as it came in."""

    method: str
    path: str
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def range(self) -> str | None:
        return self.headers.get("range")


class FileServer:
    """Serves `files` by path.

    Attributes:
        files: path -> bytes.
        status: path -> statuses of the first answers, in order; afterwards all is well.
        cut: path -> bytes after which the first bodies break off, in order; afterwards all is well.
        stall: path -> seconds that the first answer says nothing after half of its body.
        moved: path -> address that it redirects to.
        ranges: whether Range is understood.
        pause: seconds before each body.
        asked: the requests as they came in, in order.
    """

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.status: dict[str, list[int]] = defaultdict(list)
        self.cut: dict[str, list[int]] = defaultdict(list)
        self.stall: dict[str, float] = {}
        self.moved: dict[str, str] = {}
        self.ranges = True
        self.pause = 0.0
        self.asked: list[Asked] = []
        self.lock = threading.Lock()
        server = self

        class Handler(_Handler):
            owner = server

        self._server = _Listening(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def put(self, path: str, content: bytes) -> None:
        """Serve bytes at a path."""
        self.files[path] = content

    def index(self, package: str, wheels: dict[str, bytes], *, hashes: bool = True) -> str:
        """Serve wheels as a simple index (PEP 503) does, and return its address."""
        links = []
        for name, content in wheels.items():
            self.put(f"/wheels/{name}", content)
            digest = f"#sha256={hashlib.sha256(content).hexdigest()}" if hashes else ""
            links.append(f'<a href="/wheels/{name}{digest}">{name}</a>')
        page = f"<!DOCTYPE html><html><body>{''.join(links)}</body></html>"
        self.put(f"/simple/{package}/", page.encode())
        return f"{self.url}/simple"

    def bodies(self, path: str) -> list[Asked]:
        """The requests for the content of a path."""
        return [one for one in self.asked if one.path == path and one.method == "GET"]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Listening(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is no news."""


class _Handler(BaseHTTPRequestHandler):
    owner: FileServer
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """The tests print what matters."""

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, *, body: bool) -> None:
        path = urlsplit(self.path).path
        headers = {name.lower(): value for name, value in self.headers.items()}
        with self.owner.lock:
            self.owner.asked.append(Asked(self.command, path, headers))
            status = self.owner.status[path].pop(0) if self.owner.status[path] else 0
        if path in self.owner.moved:
            self._head(302, 0, {"Location": self.owner.moved[path]})
        elif status:
            self._head(status, 0, {})
        elif path not in self.owner.files:
            self._head(404, 0, {})
        else:
            self._send(path, self.owner.files[path], headers.get("range"), body=body)

    def _send(self, path: str, content: bytes, wanted: str | None, *, body: bool) -> None:
        kind = "text/html" if path.endswith("/") else "application/octet-stream"
        extra = {
            "Content-Type": kind,
            "ETag": f'"{hashlib.sha256(content).hexdigest()}"',
            "X-Repo-Commit": COMMIT,
            "Accept-Ranges": "bytes",
        }
        start = 0
        if wanted and self.owner.ranges:
            start = int(wanted.removeprefix("bytes=").partition("-")[0])
            if start >= len(content):
                self._head(416, 0, {"Content-Range": f"bytes */{len(content)}"})
                return
            extra["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        rest = content[start:]
        self._head(206 if "Content-Range" in extra else 200, len(rest), extra)
        if body:
            self._body(path, rest)

    def _body(self, path: str, content: bytes) -> None:
        time.sleep(self.owner.pause)
        with self.owner.lock:
            end = self.owner.cut[path].pop(0) if self.owner.cut[path] else len(content)
            stall = self.owner.stall.pop(path, 0.0)
        if stall:
            self.wfile.write(content[: len(content) // 2])
            self.wfile.flush()
            time.sleep(stall)
            return
        self.wfile.write(content[:end])
        if end < len(content):
            self.close_connection = True

    def _head(self, status: int, length: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(length))
        self.end_headers()
