"""One web server, asked by many threads: each request comes back whole, or as one clear error."""

from __future__ import annotations

import json as json_
import logging
import math
import os
import random
import re
import socket
import threading
import time
import weakref
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cached_property
from http import HTTPStatus
from ipaddress import ip_address
from itertools import count
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NoReturn, Self
from urllib.parse import urlsplit

import msgspec

from veriglot.errors import UsageError, VeriglotError, needing
from veriglot.signatures import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import httpx2

__all__ = ["HttpError", "Response", "Session", "checked_address", "refuse_secrets"]


# What may be the address of a server: nothing that holds a secret, since addresses are written down.


def checked_address(base_url: str) -> str:
    """The address of a server, without a slash at its end.

    Raises:
        UsageError: it is none, or holds a user name, a password or a query, which manifests would keep.
    """
    holds_password = "@" in base_url  # of an address that cannot be read, any may stand before a secret's end
    try:
        parts = urlsplit(base_url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        if usable:
            holds_password = "@" in parts.netloc
    except ValueError:
        usable = False
    if holds_password:  # the address is not shown: it holds a secret
        raise UsageError(
            "The address of the server holds a user name or a password.",
            "Leave them out, and name the environment variable that holds the key.",
        )
    if not usable or parts.query or parts.fragment:
        shown = base_url.partition("?")[0]  # keys are sometimes put behind it
        raise UsageError(
            f"{shown!r} is not the address of a server.", "Give one such as http://127.0.0.1:8000/v1, without a query."
        )
    return base_url.rstrip("/")


# Keys: read from the environment, sent in a header, and blacked out wherever they might show.


_BLACK = "[secret]"
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,63}")  # what can be shown as the name of a variable without a second thought
_SECRET_HEADER = re.compile(
    r"(proxy-)?authorization|cookie|(.*[-_])?(api|access|auth|secret|subscription)?[-_]?(key|token|secret|password)"
)
_SHORTEST_IN_TEXT = 4
_SHORTEST_IN_DATA = 16  # local servers take words such as "ollama" for a key, and an answer may hold those


class Secrets:
    """Headers whose values nobody gets to see.

    Args:
        variables: header name -> name of the environment variable that holds its value. An `Authorization` whose value
            names no scheme is sent as `Bearer <value>`.

    Raises:
        UsageError: a variable is not set or empty, or its value cannot be sent in a header. A name that could be a key,
            given where the name of its variable belongs, is not shown.
    """

    __slots__ = ("_values", "variables")

    def __init__(self, variables: Mapping[str, str]) -> None:
        self.variables = dict(variables)
        self._values = {header: _read_secret(variable) for header, variable in variables.items()}

    def __repr__(self) -> str:
        return f"Secrets({self.variables})"

    def __bool__(self) -> bool:
        return bool(self._values)

    def __reduce__(self) -> NoReturn:
        raise TypeError("secrets are not written anywhere; give the names of the variables instead")

    def sign(self, request: httpx2.Request) -> httpx2.Request:
        """The request with the secret headers; the one place where the values leave this object."""
        for header, value in self._values.items():
            bare = header.lower() == "authorization" and " " not in value
            request.headers[header] = f"Bearer {value}" if bare else value
        return request

    def black_out(self, text: str) -> str:
        """The text with every value of at least 4 characters replaced."""
        for value in self._parts():
            if len(value) >= _SHORTEST_IN_TEXT:
                text = text.replace(value, _BLACK)
        return text

    def black_out_data(self, data: bytes) -> bytes:
        """The bytes with every value of at least 16 characters replaced: a server may echo what it was sent."""
        for value in self._parts():
            if len(value) >= _SHORTEST_IN_DATA:
                data = data.replace(value.encode("latin-1"), _BLACK.encode())
        return data

    def _parts(self) -> list[str]:
        """The values, and what stands after a scheme in them; the longest first, so that none is left in part."""
        parts = {part for value in self._values.values() for part in (value, value.rpartition(" ")[2])}
        return sorted(parts - {""}, key=len, reverse=True)


def refuse_secrets(key: str | None, headers: Iterable[str]) -> None:
    """Refuse keys that are given openly, which end in logs, files and signatures.

    Args:
        key: the environment variable that holds a key; None for none.
        headers: the names of the headers that are given with their values.

    Raises:
        UsageError: what should be a variable may be the key itself, or a header holds one; neither is shown.
    """
    if key is not None and not _VARIABLE.fullmatch(key) and not os.environ.get(key):
        raise UsageError(
            "There is no environment variable of the name that was given for the key. The name is not shown, as it may"
            " be the key itself.",
            "Type: export API_KEY=<the key>, and give the name API_KEY.",
        )
    for header in headers:
        if _SECRET_HEADER.fullmatch(header.strip().lower()):
            raise UsageError(
                f"The header {header!r} is given openly, and holds a key.",
                "Put the key into an environment variable, and give the variable's name instead.",
            )


def _read_secret(variable: str) -> str:
    refuse_secrets(variable, ())
    value = os.environ.get(variable, "").strip()
    empty, sendable = not value, value.isascii() and value.isprintable()
    if value and sendable:
        return value
    del value  # a traceback can show the variables of the frames in it
    if empty:
        raise UsageError(f"The environment variable {variable} is not set.", f"Type: export {variable}=<the key>")
    raise UsageError(
        f"The value of the environment variable {variable} cannot be sent: it is not plain ASCII in one line.",
        "Copy the key again.",
    )


# What can go wrong with a request over HTTP, as one error: what the server did, and whether asking again can help.


# Statuses after which the same request may succeed: too early, too many, a lock, and what is broken for now.
_RETRYABLE = frozenset({408, 409, 425, 429, *range(500, 600)}) - {501, 505}

_REMEDIES = {
    401: "Name the environment variable that holds the key, and check the key.",
    403: "Check that the key may do this.",
    404: "Check the address (does it end in /v1?) and the name of the model.",
    413: "Send less text.",
    429: "Lower the rate or the number of jobs, or try again later; what is finished is kept.",
}


class HttpError(VeriglotError):
    """A request that got no usable answer, after as many attempts as the session makes.

    Attributes:
        status: the HTTP status, or None where no answer arrived.
        retryable: whether the same request may succeed later.
        trouble: a `status` that is no success, a `host` unknown or not listening, a cut `connection`, `timeout`, no
            `json`, session `closed`.
        body: the beginning of what the server said, with secrets blacked out; empty where it said nothing.
        retry_after: the seconds that the server asked to wait, or None.
        attempts: how many times the request was sent.
    """

    def __init__(
        self,
        message: str,
        remedy: str = "",
        *,
        status: int | None = None,
        retryable: bool = False,
        trouble: Literal["status", "host", "connection", "timeout", "json", "closed"] = "status",
        body: str = "",
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, remedy)
        self.status = status
        self.retryable = retryable
        self.trouble = trouble
        self.body = body
        self.retry_after = retry_after
        self.attempts = 1

    def after(self, attempts: int) -> HttpError:
        """The same error, saying how many attempts there were."""
        if attempts > 1 and self.attempts == 1:
            self.message = f"{self.message} ({attempts} attempts)"
            self.args = (self.message,)
        self.attempts = attempts
        return self


# The answer of a web server: status, headers and bytes, with the JSON in them.


@dataclass
class Response:
    """An answer that arrived whole.

    Attributes:
        status: the HTTP status, 200 to 299.
        headers: the headers, by lower-case name.
        data: the body, decompressed.
    """

    status: int
    headers: Mapping[str, str]
    data: bytes

    def json(self) -> Any:
        """The body as JSON; decoded once.

        Raises:
            ValueError: it is not JSON.
        """
        return self._content

    @property
    def retry_after(self) -> float | None:
        """The seconds to wait that the server asks for, at least 0; None where it asks for none that can be read."""
        return _retry_after(self.headers)

    def message(self) -> str:
        """What an error says in words, where it says it as JSON APIs do (`error.message` and the like); else empty."""
        try:
            content = self.json()
        except ValueError:
            return ""
        while isinstance(content, dict):
            content = content.get("error") or content.get("message") or content.get("detail")
        return content if isinstance(content, str) else ""

    @cached_property
    def _content(self) -> Any:
        try:
            return msgspec.json.decode(self.data)
        except msgspec.DecodeError:
            # Python's own decoder also takes NaN, Infinity and half surrogate pairs, which model servers do write.
            return json_.loads(self.data)


def _retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """The seconds that `Retry-After` names, as a number or as a date (RFC 9110, section 10.2.3).

    A date is held against the server's own `Date` where it sent one, so that clocks that disagree do no harm.
    """
    value = headers.get("retry-after", "").strip()
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        until = _date(value)
        if until is None:
            return None
        now = now or _date(headers.get("date", "")) or datetime.now(UTC)
        seconds = (until - now).total_seconds()
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _date(value: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(value)
    except (ValueError, TypeError):
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)


class _Pace:
    """Lets requests go no faster than a rate, over all threads, and all of them wait where a server asks for it.

    Where there are `Session.permits`, both hold for all workers together.
    """

    def __init__(self, rate: float | None, stopped: threading.Event, server: str) -> None:
        self._gap = 1.0 / rate if rate else 0.0
        self._next = 0.0
        self._stopped = stopped
        self._lock = threading.Lock()
        self._server = server
        self._asking: list[None] = []  # as many as threads that wait for a permit
        self._permits = 0
        self._permits_lock = threading.Lock()

    def hold(self, seconds: float) -> None:
        """No request goes out for so many seconds."""
        if Session.permits:
            Session.permits("hold", self._server, seconds)
        with self._lock:
            self._next = max(self._next, time.monotonic() + seconds)

    def wait(self) -> None:
        """Return when this thread's turn has come, or when waiting has to end.

        A hold that came while this thread waited is waited for too, and the turn is taken at the end of the wait.
        """
        if Session.permits:
            self._asking.append(None)
            with self._permits_lock:  # whoever finds no permit asks for one for each thread that waits
                try:
                    if not self._permits:
                        self._permits = Session.permits("take", self._server, self._gap, len(self._asking))
                    self._permits -= 1
                finally:
                    self._asking.pop()
        while not self._stopped.is_set():
            with self._lock:
                now = time.monotonic()
                remaining = self._next - now
                if remaining <= 0:
                    due = self._next if now - self._next < self._gap else now  # who wakes late delays no other thread
                    self._next = due + self._gap
                    return
            self._stopped.wait(remaining)


_LOG = logging.getLogger(__name__)
_USER_AGENT = f"veriglot/{__version__}"
_EXCERPT = 2000
_SHORT = 300
_LONGEST_BACKOFF = 30.0
_UNKNOWN_HOST = 2  # retries where no server answered yet: a mistyped address, one that does not run, or no network
_FINAL = ("CERTIFICATE_VERIFY_FAILED", "WRONG_VERSION_NUMBER")  # not trusted; a server that speaks no TLS


def _is_nobody_there(error: BaseException | None) -> bool:
    while error is not None and not isinstance(error, socket.gaierror | ConnectionRefusedError):
        error = error.__cause__ or error.__context__
    return error is not None


class Session:
    """Talks to one web server; safe to share between threads; a context manager.

    What can succeed later is tried again, after a wait drawn at random below a bound that doubles ("full jitter"):
    statuses 408, 409, 425, 429 and 5xx, connections that are cut, time-outs, and answers that should be JSON and are
    not; an unknown host, or one that refuses and never answered, twice at most. Where the server names a wait
    (`Retry-After`, seconds or a date), all threads wait so long.

    Args:
        base_url: the address that every path is put behind, such as `http://127.0.0.1:8000/v1`.
        headers: sent with every request; none that holds a key.
        secrets: header name -> name of the environment variable that holds its value; see `Secrets`. With
            secrets, a redirection is an error: they are meant for this address only.
        timeout: seconds without a byte after which an attempt fails, and seconds after which it fails however many
            came: it ends within twice as long.
        retries: how many times a request is sent again; 0 for never.
        rate: the most requests a second, over all threads, those sent again included; None for no bound.
        user_agent: who asks; public services want an address to write to in it.
        backoff: seconds; the bound of the first wait.
        longest_wait: seconds; where a server asks for a longer wait than this, the request fails at once and says so.
        remedy: what to do where no answer comes.

    Raises:
        UsageError: an address that is none or holds a password, a rate or time-out that is no positive number, a
            variable that is not set, or a key among `headers`.
        MissingExtraError: the HTTP client is not installed.

    Attributes:
        permits: in a worker of a cluster, what makes `rate` and the waits that servers ask for hold for all workers:
            calls a method of the class that hands them out, by its name, in `ray_engine`.
    """

    permits: ClassVar[Callable[..., Any] | None] = None

    def __init__(
        self,
        base_url: str,
        *,
        headers: Mapping[str, str] | None = None,
        secrets: Mapping[str, str] | None = None,
        timeout: float = 60.0,
        retries: int = 6,
        rate: float | None = None,
        user_agent: str = _USER_AGENT,
        backoff: float = 0.5,
        longest_wait: float = 120.0,
        remedy: str = "Check the address, and that the server is running.",
    ) -> None:
        if not timeout > 0:
            raise UsageError(f"A time-out of {timeout} s is not above 0.")
        if rate is not None and not rate > 0:
            raise UsageError(f"A rate of {rate} requests a second is not above 0.", "Leave it out for no limit.")
        if retries < 0:
            raise UsageError(f"{retries} retries are below 0.")
        self.base_url = checked_address(base_url)
        refuse_secrets(None, headers or ())
        self._secrets = Secrets(secrets or {})
        self._timeout = timeout
        self._retries = retries
        self._backoff = backoff
        self.longest_wait = longest_wait
        self._remedy = remedy
        self._answered = False
        self._stopped = threading.Event()
        self._pace = _Pace(rate, self._stopped, self.base_url)
        self._client = self._open({"user-agent": user_agent, **(headers or {})})
        self._let_go = weakref.finalize(self, self._client.close)  # for those who forget to close

    def __repr__(self) -> str:
        return f"Session({self.base_url!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End waits at once, and let go of the connections; a request that is under way in another thread fails."""
        self._stopped.set()
        self._let_go()

    def get(
        self,
        path: str = "",
        params: Mapping[str, Any] | None = None,
        *,
        review: Callable[[Response | HttpError], HttpError | None] | None = None,
    ) -> Response:
        """Ask for a page of JSON.

        Args:
            path: what is put behind the session's address.
            params: the query; None values are left out.
            review: looks at what an attempt gave, an answer or an error, and gives the error to raise in its place,
                which says whether to try again; None leaves it as it is. For servers that refuse with status 200.

        Returns:
            The answer, of a status from 200 to 299.

        Raises:
            HttpError: there was no such answer, after all attempts.
        """
        query = {name: value for name, value in (params or {}).items() if value is not None}
        return self._ask("GET", path, params=query, review=review)

    def post(self, path: str, json: Any = None, *, headers: Mapping[str, str] | None = None) -> Response:
        """Send a body as JSON; arguments, result and errors otherwise as for `get`.

        Args:
            path: what is put behind the session's address.
            json: the body: anything that JSON can hold, records included.
            headers: sent with this request only.
        """
        sent = {"content-type": "application/json", **(headers or {})}
        return self._ask("POST", path, content=msgspec.json.encode(json), headers=sent)

    def _ask(
        self,
        method: str,
        path: str,
        *,
        review: Callable[[Response | HttpError], HttpError | None] | None = None,
        **parts: Any,
    ) -> Response:
        url = f"{self.base_url}/{path.lstrip('/')}" if path else self.base_url
        for attempt in count(1):
            outcome = self._once(f"{method} {url}", method, url, parts)
            error = outcome if isinstance(outcome, HttpError) else None
            if review is not None:
                error = review(outcome) or error
            if error is None:
                assert isinstance(outcome, Response)
                return outcome
            too_long = (error.retry_after or 0.0) > self.longest_wait
            few = error.trouble == "host" and not self._answered
            retries = min(self._retries, _UNKNOWN_HOST) if few else self._retries
            if not error.retryable or too_long or attempt > retries or self._stopped.is_set():
                raise error.after(attempt)
            wait = random.uniform(0.0, min(_LONGEST_BACKOFF, self._backoff * 2.0 ** (attempt - 1)))  # noqa: S311 (no secret)
            if error.retry_after is not None:
                wait = error.retry_after + min(wait, 1.0)  # not all at one moment
            _LOG.info("attempt %d: %s; next in %.2f s", attempt, error.message, wait)
            self._stopped.wait(wait)
        raise AssertionError("attempts are counted without end")

    def _once(self, where: str, method: str, url: str, parts: dict[str, Any]) -> Response | HttpError:
        """What one attempt gives. No error is raised inside a library's exception, which may hold the request."""
        self._pace.wait()
        if self._stopped.is_set():
            return HttpError(f"{where} was not sent: the session is closed", retryable=True, trouble="closed")
        answer = self._exchange(method, url, where, parts)
        if isinstance(answer, HttpError):
            return answer
        if not 200 <= answer.status < 300:
            return self._refused(where, answer)
        try:
            answer.json()
        except ValueError:
            return HttpError(
                f"{where} did not answer with whole JSON: {self._excerpt(answer.data, _SHORT)}",
                "Check that the address is that of an API, and check any proxy.",
                status=answer.status,
                retryable=True,
                trouble="json",
            )
        return answer

    def _exchange(self, method: str, url: str, where: str, parts: dict[str, Any]) -> Response | HttpError:
        """One request and its answer, or what kept it from arriving.

        The client's own exceptions carry the request with its headers, so they end here.
        """
        import httpx2

        deadline = time.monotonic() + self._timeout
        try:
            with self._client.stream(method, url, **parts) as answer:
                self._answered = True
                data = bytearray()
                for block in answer.iter_bytes():
                    data += block
                    if time.monotonic() > deadline:
                        return self._too_slow(where)
                headers = {name.lower(): self._secrets.black_out(value) for name, value in answer.headers.items()}
                return Response(answer.status_code, headers, self._secrets.black_out_data(bytes(data)))
        except httpx2.TimeoutException:
            return self._too_slow(where)
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, RuntimeError) as error:
            return self._unreachable(where, error)

    def _too_slow(self, where: str) -> HttpError:
        return HttpError(
            f"{where} did not answer within {self._timeout:g} s",
            "Raise the time-out, or ask for less at a time.",
            retryable=True,
            trouble="timeout",
        )

    def _unreachable(self, where: str, error: Exception) -> HttpError:
        import httpx2

        reason = self._secrets.black_out(str(error) or type(error).__name__)
        final = isinstance(
            error, httpx2.UnsupportedProtocol | httpx2.LocalProtocolError | httpx2.TooManyRedirects | httpx2.InvalidURL
        )
        return HttpError(
            f"{where} got no answer: {reason}",
            self._remedy,
            retryable=not final and not any(sign in reason for sign in _FINAL),
            trouble="host" if _is_nobody_there(error) else "connection",
        )

    def _refused(self, where: str, answer: Response) -> HttpError:
        """The error of an answer whose status is no success; the texts hold no secrets."""
        status, wait = answer.status, answer.retry_after
        try:
            phrase = f" {HTTPStatus(status).phrase}"
        except ValueError:  # a status of the server's own invention
            phrase = ""
        excerpt = self._excerpt(answer.message() or answer.data, _SHORT)
        retryable = status in _RETRYABLE
        remedy = _REMEDIES.get(status, "Try again later; what is finished is kept." if retryable else "")
        if 300 <= status < 400:
            remedy = "Give the address that it points to; a key is not carried along to another address."
        if retryable and wait is not None:
            if wait > self.longest_wait:
                remedy = f"The server asks to wait {wait:.0f} s: try again then; what is finished is kept."
            else:
                self._pace.hold(wait)
        return HttpError(
            f"{where} answered {status}{phrase}{': ' if excerpt else ''}{excerpt}",
            remedy,
            status=status,
            retryable=retryable,
            body=self._excerpt(answer.data),
            retry_after=wait,
        )

    def _excerpt(self, data: str | bytes, length: int = _EXCERPT) -> str:
        text = data if isinstance(data, str) else data[: 8 * length].decode("utf-8", "replace")
        text = " ".join(self._secrets.black_out(text).split())
        return text if len(text) <= length else f"{text[:length]} ..."

    def _open(self, headers: dict[str, str]) -> httpx2.Client:
        with needing("Talking to a server", "llm"):
            import httpx2
        return httpx2.Client(
            headers=headers,
            auth=self._secrets.sign if self._secrets else None,  # added at sending: no object of ours holds them
            timeout=httpx2.Timeout(self._timeout, connect=min(self._timeout, 10.0)),
            follow_redirects=not self._secrets,
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=100),
            trust_env=not _is_loopback(self.base_url),  # a proxy does not know this machine's servers
        )


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
