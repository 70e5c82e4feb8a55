"""Sessions for Wikimedia's servers: JSON over HTTP, cached answers, polite headers and rates."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

import msgspec

from veriglot.errors import UsageError, VeriglotError
from veriglot.http.session import HttpError
from veriglot.signatures import __version__, digest
from veriglot.storage.cache import Cache
from veriglot.wikipedia.editions import edition_of, wiki_url

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from types import TracebackType

    from veriglot.http.session import Response, Session

__all__ = [
    "AnswerCache",
    "JsonClient",
    "SourceError",
    "page_views_session",
    "user_agent",
    "wikidata_session",
    "wikipedia_session",
]


class JsonClient:
    """GET requests to one server, one after the other, as public services ask for.

    Args:
        session: the server; its rate, time-out and retries hold.
        cache: where answers are stored; None stores none.
    """

    def __init__(self, session: Session, cache: AnswerCache | None = None) -> None:
        self.session = session
        self._cache = cache

    def get(
        self,
        path: str,
        params: Mapping[str, str],
        review: Callable[[Response | HttpError], HttpError | None] | None = None,
        *,
        label: str = "",
        none_if_missing: bool = False,
    ) -> Any:
        """The JSON of an answer.

        Args:
            path: what is put behind the session's address.
            params: the query.
            review: see `Session.get`; only answers that it leaves as they are are stored.
            none_if_missing: a 404 that says so in JSON is the answer None, and stored; that of a wrong address is not.
            label: tells apart requests that look the same and are answered differently (random pages).

        Raises:
            HttpError: no usable answer after the session's attempts.
        """
        address = f"{self.session.base_url}/{path}"
        key = digest([address, label, *(part for pair in sorted(params.items()) for part in pair)])
        stored = self._cache.get(key) if self._cache is not None else None
        if stored is not None:
            return msgspec.json.decode(stored)
        try:
            response = self.session.get(path, params, review=review)
        except HttpError as error:
            if not (none_if_missing and error.status == 404 and error.body.startswith("{")):
                raise
            if self._cache is not None:
                self._cache.put(key, b"null")
            return None
        if self._cache is not None:
            self._cache.put(key, response.data)
        return response.json()


class SourceError(HttpError):
    """A server answered, and what it says is that it cannot or will not.

    Attributes:
        code: the server's own word for it, such as `maxlag`; empty where it has none.
    """

    def __init__(
        self,
        message: str,
        *,
        remedy: str = "",
        code: str = "",
        retryable: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, remedy=remedy, retryable=retryable, retry_after=retry_after)
        self.code = code


# Answers that were fetched once, in one SQLite file, so that work that was interrupted asks nothing twice.


_TABLE = "CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, answer BLOB NOT NULL)"


class AnswerCache:
    """Bytes by key, safe for several threads and processes; whatever is killed when, an answer is there or not.

    Args:
        folder: made if it is not there; the file in it is `answers.sqlite`.

    Raises:
        VeriglotError: it cannot be made, opened or read, or is of another version.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._cache = Cache(folder / "answers.sqlite", _TABLE, error=self._error)

    def get(self, key: str) -> bytes | None:
        """What was put under the key, or None."""
        rows = self._cache.read("SELECT answer FROM answers WHERE key = ?", (key,))
        try:
            return zlib.decompress(rows[0][0]) if rows else None
        except zlib.error as error:
            raise self._error(str(error)) from error

    def put(self, key: str, answer: bytes) -> None:
        """Keep an answer; the first one under a key stays."""
        self._cache.write("INSERT OR IGNORE INTO answers VALUES (?, ?)", [(key, zlib.compress(answer))])

    def __len__(self) -> int:
        return int(self._cache.read("SELECT count(*) FROM answers")[0][0])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._cache.close()

    def _error(self, what: str) -> VeriglotError:
        return VeriglotError(
            f"The folder of fetched answers {self._folder} cannot be used: {what}",
            remedy="Free the disk, or name another folder; its answers are fetched again.",
        )


# Sessions for Wikimedia's servers as their operators ask: who we are, one request after the other, not too fast.
#
# https://foundation.wikimedia.org/wiki/Policy:User-Agent_policy, https://www.mediawiki.org/wiki/API:Etiquette.


def user_agent(contact: str | None) -> str:
    """How Veriglot introduces itself.

    Args:
        contact: an e-mail address, or the address of a page, by which its user can be reached. Sent to the server.

    Raises:
        UsageError: a contact that is none.
    """
    if contact is None:
        return f"veriglot/{__version__}"
    contact = contact.strip()
    if not contact.isascii() or not contact.isprintable() or not ("@" in contact or contact.startswith("http")):
        raise UsageError(f"{contact!r} is no way to reach somebody.", remedy="Give an e-mail or web address.")
    return f"veriglot/{__version__} ({contact})"


def wikipedia_session(
    language: str, *, contact: str | None, server: str | None = None, rate: float | None = 5.0
) -> Session:
    """The server of a Wikipedia; at most `rate` requests a second.

    Args:
        language: which Wikipedia.
        contact: see `user_agent`; needed for Wikimedia's own servers.
        server: another address, such as that of a mirror.
        rate: None for no bound.

    Raises:
        UsageError: no contact, or no such Wikipedia.
    """
    return _session(server or wiki_url(edition_of(language)), contact, rate, retries=8, backoff=1.0)


def wikidata_session(*, contact: str | None, server: str | None = None, rate: float | None = 1.0) -> Session:
    """Wikidata's query server; arguments and errors as for `wikipedia_session`."""
    return _session(server or "https://query.wikidata.org", contact, rate, retries=6, backoff=1.0, timeout=90.0)


def page_views_session(*, contact: str | None, server: str | None = None, rate: float | None = 10.0) -> Session:
    """The server of page views; arguments and errors as for `wikipedia_session`."""
    return _session(server or "https://wikimedia.org/api/rest_v1", contact, rate, retries=6)


def _session(server: str, contact: str | None, rate: float | None, **options: Any) -> Session:
    from veriglot.http.session import Session

    host = urlsplit(server).hostname or ""
    if contact is None and host.endswith(("wikipedia.org", "wikimedia.org", "wikidata.org")):
        raise UsageError(
            "Wikimedia's servers refuse programs that do not say whom to write to.",
            remedy="Add --contact with an e-mail or web address of yours; it is sent to them with each request.",
        )
    return Session(server, user_agent=user_agent(contact), rate=rate, **options)
