"""The page's files, read once when the server starts and served by name: what is not in the list is not there.

Their addresses hold a digest of all of them, so browsers keep them for good, and a new version is a new address.
Modules import each other by relative paths, which lead to the same version.
"""

from __future__ import annotations

import gzip
import hashlib
import mimetypes
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

from fastapi import APIRouter, Request, Response

from veriglot.annotate.store.errors import NotFound
from veriglot.web.studio.failures import refusal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.resources.abc import Traversable

    from veriglot.web.studio.settings import Settings

__all__ = ["PageFiles", "router"]

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
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
    ".webmanifest": "application/manifest+json",
    ".txt": "text/plain; charset=utf-8",
    ".md": "text/plain; charset=utf-8",
}
_WORTH_PACKING = 512  # bytes


class _File(NamedTuple):
    data: bytes
    packed: bytes | None
    type: str


class PageFiles:
    """All files of the page.

    Attributes:
        digest: of all of them, with their names.
    """

    def __init__(self, settings: Settings, folder: Traversable | None = None) -> None:
        folder = folder if folder is not None else files("veriglot.web.studio") / "page"
        found = dict(_walk(folder)) if folder.is_dir() else {}
        hashed = hashlib.sha256(settings.path.encode())
        for name, data in sorted(found.items()):
            hashed.update(f"{name}\0{len(data)}\0".encode() + data)
        self.digest = hashed.hexdigest()[:16]
        index = found.pop("index.html", None)
        self._files = {name: _file(name, data) for name, data in found.items()}
        place = f"{settings.path}/page/{self.digest}/"
        self.index = None if index is None else index.replace(b'"/page/', f'"{place}'.encode())

    def get(self, name: str) -> _File | None:
        """The file of a name."""
        return self._files.get(name)


def _walk(folder: Traversable, before: str = "") -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        if entry.name.startswith((".", "__")):
            continue
        if entry.is_dir():
            yield from _walk(entry, f"{before}{entry.name}/")
        else:
            yield before + entry.name, entry.read_bytes()


def _file(name: str, data: bytes) -> _File:
    suffix = "." + name.rpartition(".")[2]
    type_ = _TYPES.get(suffix) or mimetypes.types_map.get(suffix, "application/octet-stream")
    packed = gzip.compress(data, mtime=0) if len(data) >= _WORTH_PACKING else None
    return _File(data, packed if packed is not None and len(packed) < len(data) else None, type_)


router = APIRouter(include_in_schema=False)


@router.get("/page/{digest}/{name:path}")
def file(request: Request, digest: str, name: str) -> Response:
    """A file of the page."""
    page: PageFiles = request.app.state.page
    found = page.get(name)
    if found is None:
        raise NotFound("file")
    current = digest == page.digest  # a page that was open during an update asks under the old address
    headers = {
        "cache-control": "public, max-age=31536000, immutable" if current else "no-cache",
        "vary": "accept-encoding",
    }
    if found.packed is not None and "gzip" in request.headers.get("accept-encoding", ""):
        return Response(found.packed, 200, {**headers, "content-encoding": "gzip"}, media_type=found.type)
    return Response(found.data, 200, headers, media_type=found.type)


def _index(request: Request) -> Response:
    page: PageFiles = request.app.state.page
    if page.index is None:
        return refusal(503, "no_page", "The page is not part of this installation.", "Install Veriglot again.")
    return Response(page.index, 200, {"cache-control": "no-cache"}, media_type="text/html; charset=utf-8")


for _path in _PAGES:
    router.add_api_route(_path, _index, methods=["GET", "HEAD"])
