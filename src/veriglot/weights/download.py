"""One file over HTTP, cut off as often as it may be: what arrived is kept, and the next request asks for the rest."""

from __future__ import annotations

import http.client
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING

from veriglot.weights.arrival import BLOCK
from veriglot.weights.errors import PlaceError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from http.client import HTTPResponse

    from veriglot.weights.arrival import Arrivals
    from veriglot.weights.registry import ModelFile

__all__ = ["AGAIN", "fetch_urls"]

_SECONDS = 30.0  # without a byte, after which a connection is given up
_PROGRESS = 1 << 16  # bytes that count as something
_PAUSES = (0.2, 0.5, 1.0, 2.0)  # seconds after the first, second ... request in a row that brought next to nothing
AGAIN = {408, 425, 429, 500, 502, 503, 504}  # statuses after which the same request may succeed
_NO_SUCH_RANGE = 416


def fetch_urls(
    arrivals: Arrivals,
    address: Callable[[ModelFile], str],
    *,
    headers: dict[str, str] | None = None,
    seconds: float = _SECONDS,
    pauses: Sequence[float] = _PAUSES,
) -> None:
    """Download every missing file.

    Args:
        arrivals: where they go; a part that is there already is continued.
        address: where a file stands, over http or https.
        headers: sent to that server, and not to one that it redirects to: a key is nobody else's business.
        seconds: without a byte, after which a connection is given up and the rest asked for again.
        pauses: seconds to wait after the first, second ... request in a row that brought next to nothing; after one
            more the server is given up.

    Raises:
        PlaceError: the server does not have it, gives something else, or keeps failing; in the last case what arrived
            is kept, and the error is retryable.
    """
    for file in arrivals.missing():
        _Transfer(arrivals, file, address(file), headers or {}, seconds, pauses).run()


class _Transfer:
    def __init__(
        self,
        arrivals: Arrivals,
        file: ModelFile,
        url: str,
        headers: dict[str, str],
        seconds: float,
        pauses: Sequence[float],
    ) -> None:
        self._arrivals, self._file, self._url = arrivals, file, url
        self._headers, self._seconds, self._pauses = headers, seconds, pauses
        self._part = arrivals.part(file)

    def run(self) -> None:
        if not self._url.startswith(("http://", "https://")):
            raise PlaceError(f"{self._url} is not an address of the web.")
        resumed = self._held() > 0
        self._complete()
        try:
            self._arrivals.accept(self._file, self._url)
        except PlaceError:
            if not resumed:
                raise
            self._complete()  # the part may have been of another file: once more, all of it
            self._arrivals.accept(self._file, self._url)

    def _complete(self) -> None:
        """Ask for the rest until all of it is here."""
        failures = 0
        while self._held() < self._file.bytes or not self._part.exists():
            before = self._held()
            try:
                self._ask()
            except PlaceError as error:
                if not error.retryable:
                    raise
                failures = 1 if self._held() - before >= _PROGRESS else failures + 1
                if failures > len(self._pauses):
                    held = f" {self._held():,} of {self._file.bytes:,} bytes are here and are kept."
                    raise PlaceError(f"{error.message}{held if self._held() else ''}", retryable=True) from error
                time.sleep(self._pauses[failures - 1])

    def _held(self) -> int:
        return self._part.stat().st_size if self._part.exists() else 0

    def _ask(self) -> None:
        """One request, for what is missing; writes down whatever of it arrives."""
        start = self._held()
        if start > self._file.bytes:
            self._part.unlink()
            start = 0
        try:
            with self._open(start) as response:
                self._write(response, start)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == _NO_SUCH_RANGE and start:  # the server's file is shorter than our part of it
                self._part.unlink()
                raise PlaceError(f"{self._url} has no byte {start:,}.", retryable=True) from error
            raise PlaceError(
                f"{self._url} answered {error.code} {error.reason}.", retryable=error.code in AGAIN
            ) from error
        except (http.client.HTTPException, TimeoutError, ConnectionError, urllib.error.URLError) as error:
            reason = getattr(error, "reason", None) or error
            raise PlaceError(f"{self._url} was cut off: {reason or type(error).__name__}.", retryable=True) from error

    def _open(self, start: int) -> HTTPResponse:
        request = urllib.request.Request(self._url, headers={"Accept-Encoding": "identity"})  # noqa: S310  # see run
        for name, value in self._headers.items():
            request.add_unredirected_header(name, value)
        if start:
            request.add_header("Range", f"bytes={start}-")
        return urllib.request.urlopen(request, timeout=self._seconds)  # type: ignore[no-any-return]  # noqa: S310

    def _write(self, response: HTTPResponse, start: int) -> None:
        at = start if response.status == http.HTTPStatus.PARTIAL_CONTENT else 0
        if at and not (response.headers.get("Content-Range") or "").startswith(f"bytes {at}-"):
            raise PlaceError(f"{self._url} was asked for the bytes from {at:,} on, and sends others.")
        with self._part.open("ab" if at else "wb") as out:
            while block := _read(response):
                at += len(block)
                if at > self._file.bytes:
                    out.truncate(0)
                    raise PlaceError(
                        f"{self._url} has more than the {self._file.bytes:,} bytes that it should have.",
                        refused_bytes=True,
                    )
                out.write(block)
                self._arrivals.progress(at, self._file.bytes)
        if at < self._file.bytes:
            self._short(response, at)

    def _short(self, response: HTTPResponse, at: int) -> None:
        """The answer ended early: cut off, unless the server had said that there is no more."""
        said = response.headers.get("Content-Length")
        if said is not None and response.status == http.HTTPStatus.OK and int(said) == at:
            self._part.unlink()
            raise PlaceError(f"{self._url} has {at:,} bytes, and should have {self._file.bytes:,}.", refused_bytes=True)
        raise PlaceError(f"{self._url} was cut off after {at:,} bytes.", retryable=True)


def _read(response: HTTPResponse) -> bytes:
    try:
        return response.read1(BLOCK)
    except http.client.IncompleteRead as error:
        return error.partial
    except OSError as error:  # a route or a network that is lost, a record of TLS that is broken: no fault of our disk
        raise http.client.HTTPException(str(error) or type(error).__name__) from error
