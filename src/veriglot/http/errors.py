"""What can go wrong with a request over HTTP, as one error: what the server did, and whether asking again can help."""

from __future__ import annotations

from http import HTTPStatus
from typing import Literal

from veriglot.errors import VeriglotError

__all__ = ["RETRYABLE", "HttpError", "Trouble", "of_status"]

RETRYABLE = frozenset({408, 409, 425, 429, *range(500, 600)}) - {501, 505}
"""Statuses after which the same request may succeed: too early, too many, a lock, and what is broken for now."""

Trouble = Literal["status", "connection", "timeout", "json", "closed"]
"""The kinds of trouble: a status that is no success, no connection or a cut one, too slow, not JSON, session closed."""

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
        trouble: the kind of trouble, one word.
        body: the beginning of what the server said, with secrets blacked out; empty where it said nothing.
        retry_after: the seconds that the server asked to wait, or None.
        attempts: how many times the request was sent.
    """

    def __init__(
        self,
        message: str,
        *,
        remedy: str = "",
        status: int | None = None,
        retryable: bool = False,
        trouble: Trouble = "status",
        body: str = "",
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, remedy=remedy)
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


def of_status(where: str, status: int, said: str, body: str, retry_after: float | None) -> HttpError:
    """The error of an answer whose status is no success.

    Args:
        where: method and address, without secrets.
        status: the HTTP status.
        said: what the answer says in words, without secrets.
        body: the beginning of the answer, without secrets.
        retry_after: the seconds of its `Retry-After`, or None.
    """
    try:
        phrase = f" {HTTPStatus(status).phrase}"
    except ValueError:  # a status of the server's own invention
        phrase = ""
    said = f": {said}" if said else ""
    retryable = status in RETRYABLE
    remedy = _REMEDIES.get(status, "Try again later; what is finished is kept." if retryable else "")
    if 300 <= status < 400:
        remedy = "Give the address that it points to; a key is not carried along to another address."
    return HttpError(
        f"{where} answered {status}{phrase}{said}",
        remedy=remedy,
        status=status,
        retryable=retryable,
        body=body,
        retry_after=retry_after,
    )
