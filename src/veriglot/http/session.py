"""A session with one web server, for many threads: each request returns a complete answer or one clear error."""

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

from veriglot.errors import UsageError, VeriglotError, requires_extra
from veriglot.signatures import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import httpx2

__all__ = ["HttpError", "Response", "Session", "checked_address", "refuse_secrets"]


# Valid addresses of a server: without secrets, because addresses are written to files.


def checked_address(base_url: str) -> str:
    """The address of a server, without a slash at the end.

    Raises:
        UsageError: it is invalid, or has a user name, a password or a query, which manifests would store.
    """
    holds_password = "@" in base_url  # in an invalid address, any @ may follow a secret
    try:
        parts = urlsplit(base_url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        if usable:
            holds_password = "@" in parts.netloc
    except ValueError:
        usable = False
    if holds_password:  # do not show the address, because it has a secret
        raise UsageError(
            "The address of the server holds a user name or a password.",
            "Leave them out, and name the environment variable that holds the key.",
        )
    if not usable or parts.query or parts.fragment:
        shown = base_url.partition("?")[0]  # some people put keys into the query
        raise UsageError(
            f"{shown!r} is not the address of a server.", "Give one such as http://127.0.0.1:8000/v1, without a query."
        )
    return base_url.rstrip("/")


# Keys: read from the environment, sent in a header, and redacted everywhere else.


_REDACTED = "[secret]"
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,63}")  # a variable name that is certainly not a key, so it may be shown
_SECRET_HEADER = re.compile(
    r"(proxy-)?authorization|cookie|(.*[-_])?(api|access|auth|secret|subscription)?[-_]?(key|token|secret|password)"
)
_SHORTEST_IN_TEXT = 4
_SHORTEST_IN_DATA = 16  # local servers accept words such as "ollama" as a key, which may occur in answers


class Secrets:
    """Headers with secret values.

    Args:
        variables: header name -> name of the environment variable with its value. An `Authorization` value without a
            scheme is sent as `Bearer <value>`.

    Raises:
        UsageError: a variable is not set or empty, or its value is not valid in a header. A variable name that may be a
            key itself is not shown.
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
        """The request with the secret headers; the values are used only here."""
        for header, value in self._values.items():
            bare = header.lower() == "authorization" and " " not in value
            request.headers[header] = f"Bearer {value}" if bare else value
        return request

    def redact(self, text: str) -> str:
        """The text with every value of at least 4 characters redacted."""
        for value in self._parts():
            if len(value) >= _SHORTEST_IN_TEXT:
                text = text.replace(value, _REDACTED)
        return text

    def redact_data(self, data: bytes) -> bytes:
        """The bytes with every value of at least 16 characters redacted: a server may echo its input."""
        for value in self._parts():
            if len(value) >= _SHORTEST_IN_DATA:
                data = data.replace(value.encode("latin-1"), _REDACTED.encode())
        return data

    def _parts(self) -> list[str]:
        """The values, and their parts after a scheme; the longest first, so that none is left in part."""
        parts = {part for value in self._values.values() for part in (value, value.rpartition(" ")[2])}
        return sorted(parts - {""}, key=len, reverse=True)


def refuse_secrets(key: str | None, headers: Iterable[str]) -> None:
    """Refuse keys in plain text, which would end up in logs, files and signatures.

    Args:
        key: the name of an environment variable with a key; None for none.
        headers: the names of the headers with plain values.

    Raises:
        UsageError: the variable name may be the key itself, or a header has a key; neither is shown.
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
    del value  # tracebacks can show local variables
    if empty:
        raise UsageError(f"The environment variable {variable} is not set.", f"Type: export {variable}=<the key>")
    raise UsageError(
        f"The value of the environment variable {variable} cannot be sent: it is not plain ASCII in one line.",
        "Copy the key again.",
    )


# All failures of HTTP requests as one error: what the server did, and whether a retry may help.


# Retryable statuses: too early, too many requests, a lock, and server errors.
_RETRYABLE = frozenset({408, 409, 425, 429, *range(500, 600)}) - {501, 505}

_REMEDIES = {
    401: "Name the environment variable that holds the key, and check the key.",
    403: "Check that the key may do this.",
    404: "Check the address (does it end in /v1?) and the name of the model.",
    413: "Send less text.",
    429: "Lower the rate or the number of jobs, or try again later; what is finished is kept.",
}


class HttpError(VeriglotError):
    """A request without a usable answer, after all attempts.

    Attributes:
        status: the HTTP status, or None if no answer arrived.
        retryable: whether the same request may succeed later.
        trouble: an error `status`, an unknown `host`, a missing or interrupted `connection`, `timeout`, invalid `json`,
            session `closed`.
        body: the beginning of the server's answer, with secrets redacted; maybe empty.
        retry_after: the seconds that the server asked to wait, or None.
        attempts: number of attempts.
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
        """The same error, with the number of attempts."""
        if attempts > 1 and self.attempts == 1:
            self.message = f"{self.message} ({attempts} attempts)"
            self.args = (self.message,)
        self.attempts = attempts
        return self


# The answer of a web server: status, headers and bytes, with parsed JSON.


@dataclass
class Response:
    """A complete answer.

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
        """The seconds that the server asks to wait, at least 0; None if it asks for none or the value is invalid."""
        return _retry_after(self.headers)

    def message(self) -> str:
        """The error message, if the answer has one as in usual JSON APIs (`error.message` and the like); else empty."""
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
            # Python's own decoder also accepts NaN, Infinity and lone surrogates, which some model servers write.
            return json_.loads(self.data)


def _retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """The seconds in `Retry-After`, as a number or as a date (RFC 9110, section 10.2.3).

    A date is compared with the server's own `Date`, if it sent one, so that wrong clocks do not matter.
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


class _RateLimiter:
    """Limits the rate of requests, over all threads, and delays all of them if a server asks for it.

    With `Session.permits`, both apply to all workers together.
    """

    def __init__(self, rate: float | None, stopped: threading.Event, server: str) -> None:
        self._gap = 1.0 / rate if rate else 0.0
        self._next = 0.0
        self._stopped = stopped
        self._lock = threading.Lock()
        self._server = server
        self._asking: list[None] = []  # one element per thread that waits for a permit
        self._permits = 0
        self._permits_lock = threading.Lock()

    def hold(self, seconds: float) -> None:
        """Stop requests for so many seconds."""
        if Session.permits:
            Session.permits("hold", self._server, seconds)
        with self._lock:
            self._next = max(self._next, time.monotonic() + seconds)

    def wait(self) -> None:
        """Return when it is this thread's turn, or when waiting must end.

        A hold that starts while this thread waits extends the wait, and the turn is taken at its end.
        """
        if Session.permits:
            self._asking.append(None)
            with self._permits_lock:  # a thread without a permit requests one for each waiting thread
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
                    due = self._next if now - self._next < self._gap else now  # a late thread does not delay the others
                    self._next = due + self._gap
                    return
            self._stopped.wait(remaining)


_LOG = logging.getLogger(__name__)
_USER_AGENT = f"veriglot/{__version__}"
_EXCERPT = 2000
_SHORT = 300
_LONGEST_BACKOFF = 30.0
_UNKNOWN_HOST = 2  # retries of an unknown host name: mistyped, or no network
_FINAL = ("CERTIFICATE_VERIFY_FAILED", "WRONG_VERSION_NUMBER")  # not trusted; a server without TLS


def _is_nobody_there(error: BaseException | None) -> bool:
    while error is not None and not isinstance(error, socket.gaierror | ConnectionRefusedError):
        error = error.__cause__ or error.__context__
    return error is not None


class Session:
    """A client for one web server; threads may share it; a context manager.

    Retryable failures are retried after a random wait below a bound that doubles ("full jitter"): statuses 408, 409,
    425, 429 and 5xx, interrupted connections, time-outs, and answers that should be JSON and are not; an unknown host,
    or one that refuses and never answered, at most twice. If the server names a wait (`Retry-After`, seconds or a
    date), all threads wait.

    Args:
        base_url: the address before every path, such as `http://127.0.0.1:8000/v1`.
        headers: sent with every request; no keys.
        secrets: header name -> name of the environment variable with its value; see `Secrets`. With secrets, a redirect
            is an error, because they are only for this address.
        timeout: seconds without a byte after which an attempt fails, and seconds in total after which it fails: it ends
            within twice as long.
        retries: maximum number of retries; 0 for none.
        rate: maximum requests per second, over all threads, with retries; None for no limit.
        user_agent: identifies the client; public services want a contact address in it.
        backoff: seconds; the bound of the first wait.
        longest_wait: seconds; if a server asks for a longer wait, the request fails immediately and says so.
        remedy: what to do if no answer comes.

    Raises:
        UsageError: an address that is invalid or has a password, a rate or time-out that is not positive, a variable
            that is not set, or a key among `headers`.
        MissingExtraError: the HTTP client is not installed.

    Attributes:
        permits: in a cluster worker, makes `rate` and requested waits apply to all workers: it calls a method of the
            class that hands out permits, by its name, in `ray_engine`.
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
        self._pace = _RateLimiter(rate, self._stopped, self.base_url)
        self._client = self._open({"user-agent": user_agent, **(headers or {})})
        self._let_go = weakref.finalize(self, self._client.close)  # if the user forgets to close

    def __repr__(self) -> str:
        return f"Session({self.base_url!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End waits immediately, and close the connections; requests in progress in other threads fail."""
        self._stopped.set()
        self._let_go()

    def get(
        self,
        path: str = "",
        params: Mapping[str, Any] | None = None,
        *,
        review: Callable[[Response | HttpError], HttpError | None] | None = None,
    ) -> Response:
        """Get a JSON document.

        Args:
            path: appended to the session's address.
            params: the query; None values are left out.
            review: checks the result of an attempt, an answer or an error, and returns the error to raise instead,
                which says whether to retry; None keeps the result. For servers that report errors with status 200.

        Returns:
            The answer, with a status from 200 to 299.

        Raises:
            HttpError: there was no such answer, after all attempts.
        """
        query = {name: value for name, value in (params or {}).items() if value is not None}
        return self._ask("GET", path, params=query, review=review)

    def post(self, path: str, json: Any = None, *, headers: Mapping[str, str] | None = None) -> Response:
        """Post a body as JSON; arguments, result and errors otherwise as for `get`.

        Args:
            path: appended to the session's address.
            json: the body: any JSON value or record.
            headers: sent only with this request.
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
                wait = error.retry_after + min(wait, 1.0)  # with jitter
            _LOG.info("attempt %d: %s; next in %.2f s", attempt, error.message, wait)
            self._stopped.wait(wait)
        raise AssertionError("attempts are counted without end")

    def _once(self, where: str, method: str, url: str, parts: dict[str, Any]) -> Response | HttpError:
        """The result of one attempt. No error is raised inside a library's exception, which may contain the request."""
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
        """One request and its answer, or its failure.

        The client's own exceptions contain the request with its headers, so they must not leave this function.
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
                headers = {name.lower(): self._secrets.redact(value) for name, value in answer.headers.items()}
                return Response(answer.status_code, headers, self._secrets.redact_data(bytes(data)))
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

        reason = self._secrets.redact(str(error) or type(error).__name__)
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
        """The error for an answer with an error status; its texts have no secrets."""
        status, wait = answer.status, answer.retry_after
        try:
            phrase = f" {HTTPStatus(status).phrase}"
        except ValueError:  # a nonstandard status
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
        text = " ".join(self._secrets.redact(text).split())
        return text if len(text) <= length else f"{text[:length]} ..."

    def _open(self, headers: dict[str, str]) -> httpx2.Client:
        with requires_extra("Talking to a server", "llm"):
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
