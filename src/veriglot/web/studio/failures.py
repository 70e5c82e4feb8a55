"""What went wrong, as JSON: what happened and what to do, never how the program looks inside."""

from __future__ import annotations

import logging
import uuid
from typing import TYPE_CHECKING, Any

import msgspec
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from sqlalchemy.exc import DataError, SQLAlchemyError
from starlette.exceptions import HTTPException

from veriglot.annotate.people import InvitationError
from veriglot.annotate.store import Conflict, NotFound, StoreError
from veriglot.errors import InputError, UsageError, VeriglotError

if TYPE_CHECKING:
    from fastapi import FastAPI, Request

__all__ = ["CutOff", "Forbidden", "Malformed", "NotSignedIn", "TooOften", "answer", "install", "refusal"]

_LOG = logging.getLogger("veriglot.studio")


class Malformed(UsageError):  # noqa: N818  # these read as what happened
    """A request that cannot be read."""

    def __init__(self, message: str, *, status: int = 422) -> None:
        super().__init__(message)
        self.status = status


class NotSignedIn(UsageError):  # noqa: N818
    """No session, or one that is over."""

    def __init__(self) -> None:
        super().__init__("You are not signed in here, or your session is over.", remedy="Open your own link again.")


class Forbidden(UsageError):  # noqa: N818
    """A request that this page did not send."""

    def __init__(self, message: str, code: str, *, remedy: str = "Reload the page.") -> None:
        super().__init__(message, remedy=remedy)
        self.code = code


class CutOff(UsageError):  # noqa: N818
    """A body that is too large, or does not come; the connection is closed, whatever is still on its way."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class TooOften(VeriglotError):  # noqa: N818
    """A limit was reached; `wait` is in seconds."""

    retryable = True

    def __init__(self, wait: int) -> None:
        super().__init__("This was called too often.", remedy=f"Try again in {wait} s.")
        self.wait = wait


def refusal(
    status: int,
    code: str,
    message: str,
    remedy: str = "",
    *,
    headers: dict[str, str] | None = None,
    field: str | None = None,
    more: dict[str, Any] | None = None,
) -> Response:
    """An error as an answer."""
    said: dict[str, Any] = {"code": code, "message": message, "remedy": remedy}
    if field is not None:
        said["field"] = field
    body = msgspec.json.encode({"error": said, **(more or {})})
    return Response(body, status, {"cache-control": "no-store", **(headers or {})}, media_type="application/json")


def answer(error: Exception) -> Response:
    """The answer to an error."""
    match error:
        case VeriglotError() if not isinstance(error, StoreError):
            return _said(error)
        case DataError():  # such as a null character, which PostgreSQL keeps in no text
            return refusal(422, "malformed", "This holds characters or numbers that cannot be kept.")
        case StoreError() | SQLAlchemyError():
            return _broken(error, 503, "unavailable", "The database does not answer; nothing was changed.")
        case HTTPException():
            return _http(error)
        case RequestValidationError():
            return refusal(422, "malformed", "A part of the address or the query does not fit.")
        case _:
            return _broken(error, 500, "internal", "Something went wrong here.")


def _said(error: VeriglotError) -> Response:
    """An error that says in words for its reader what happened."""
    headers: dict[str, str] = {}
    more: dict[str, Any] = {}
    field: str | None = None
    match error:
        case Conflict():
            status, code = 409, "conflict"
            more = {"version": error.version, "state": error.state, "layer": error.layer}
        case NotFound():
            status, code = 404, "not_found"
        case NotSignedIn():
            status, code = 401, "not_signed_in"
        case InvitationError():
            status, code = 403, f"invitation_{error.reason}"
        case Forbidden():
            status, code = 403, error.code
        case Malformed():
            status, code = error.status, "malformed"
        case CutOff():
            status, code, headers = error.status, error.code, {"connection": "close"}
        case TooOften():
            status, code, headers = 429, "too_often", {"retry-after": str(error.wait)}
        case InputError():
            status, code, field = 422, "unfit", error.field
        case _:
            status, code = 422, "refused"
    message = error.detail if isinstance(error, InputError) else error.message
    return refusal(status, code, message, error.remedy, headers=headers, field=field, more=more)


def _broken(error: Exception, status: int, code: str, message: str) -> Response:
    """The details are for the operator's log, under a number that the user can pass on."""
    number = uuid.uuid4().hex[:12]
    _LOG.error("failure %s", number, exc_info=error)
    return refusal(status, code, message, f"Try again; if it stays, tell whoever runs this: {number}.")


def _http(error: HTTPException) -> Response:
    code, message = {
        404: ("not_found", "There is no such page."),
        405: ("no_such_call", "This cannot be called in this way."),
    }.get(error.status_code, ("refused", "This cannot be answered."))
    return refusal(error.status_code, code, message, headers=dict(error.headers or {}))


def install(app: FastAPI) -> None:
    """Answer every error of an app in this way."""

    def handle(_: Request, error: Exception) -> Response:
        return answer(error)

    for kind in (VeriglotError, HTTPException, RequestValidationError, SQLAlchemyError, Exception):
        app.add_exception_handler(kind, handle)
