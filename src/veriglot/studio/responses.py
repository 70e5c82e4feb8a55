"""JSON in and out, described in OpenAPI; what went wrong, as JSON, never how the program looks inside."""

from __future__ import annotations

import logging
import uuid
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import DataError, SQLAlchemyError
from starlette.exceptions import HTTPException

from veriglot.errors import InputError, UsageError, VeriglotError
from veriglot.studio.people import InvitationError
from veriglot.studio.tables import Conflict, NotFound, StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable

    from fastapi import FastAPI

__all__ = [
    "BodyRefused",
    "Forbidden",
    "NotSignedIn",
    "RateLimited",
    "body_reader",
    "components",
    "error_body",
    "error_response",
    "install_handlers",
    "json_response",
    "openapi",
]


_LOG = logging.getLogger("veriglot.studio")


class MalformedRequest(UsageError):  # noqa: N818  # these read as what happened
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


class BodyRefused(UsageError):  # noqa: N818
    """A body that is too large, or does not come; the connection is closed, whatever is still on its way."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class RateLimited(VeriglotError):  # noqa: N818
    """A limit was reached; `wait` is in seconds."""

    retryable = True

    def __init__(self, wait: int) -> None:
        super().__init__("This was called too often.", remedy=f"Try again in {wait} s.")
        self.wait = wait


def error_body(
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
    error: dict[str, Any] = {"code": code, "message": message, "remedy": remedy}
    if field is not None:
        error["field"] = field
    body = msgspec.json.encode({"error": error, **(more or {})})
    return Response(body, status, {"cache-control": "no-store", **(headers or {})}, media_type="application/json")


def error_response(error: Exception) -> Response:
    """The answer to an error."""
    match error:
        case VeriglotError() if not isinstance(error, StoreError):
            return _expected_error(error)
        case DataError():  # such as a null character, which PostgreSQL keeps in no text
            return error_body(422, "malformed", "This holds characters or numbers that cannot be kept.")
        case StoreError() | SQLAlchemyError():
            return _internal_error(error, 503, "unavailable", "The database does not answer; nothing was changed.")
        case HTTPException():
            return _http_error(error)
        case RequestValidationError():
            return error_body(422, "malformed", "A part of the address or the query does not fit.")
        case _:
            return _internal_error(error, 500, "internal", "Something went wrong here.")


def _expected_error(error: VeriglotError) -> Response:
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
        case MalformedRequest():
            status, code = error.status, "malformed"
        case BodyRefused():
            status, code, headers = error.status, error.code, {"connection": "close"}
        case RateLimited():
            status, code, headers = 429, "too_often", {"retry-after": str(error.wait)}
        case InputError():
            status, code, field = 422, "unfit", error.field
        case _:
            status, code = 422, "refused"
    message = error.detail if isinstance(error, InputError) else error.message
    return error_body(status, code, message, error.remedy, headers=headers, field=field, more=more)


def _internal_error(error: Exception, status: int, code: str, message: str) -> Response:
    """The details are for the operator's log, under a number that the user can pass on."""
    number = uuid.uuid4().hex[:12]
    _LOG.error("failure %s", number, exc_info=error)
    return error_body(status, code, message, f"Try again; if it stays, tell whoever runs this: {number}.")


def _http_error(error: HTTPException) -> Response:
    code, message = {
        404: ("not_found", "There is no such page."),
        405: ("no_such_call", "This cannot be called in this way."),
    }.get(error.status_code, ("refused", "This cannot be answered."))
    return error_body(error.status_code, code, message, headers=dict(error.headers or {}))


def install_handlers(app: FastAPI) -> None:
    """Answer every error of an app in this way."""

    def handle(_: Request, error: Exception) -> Response:
        return error_response(error)

    for kind in (VeriglotError, HTTPException, RequestValidationError, SQLAlchemyError, Exception):
        app.add_exception_handler(kind, handle)


# JSON in and out: decoded strictly into records, encoded from them, and described in OpenAPI by the same records.


T = TypeVar("T")
_REF = "#/components/schemas/{name}"
_DESCRIBED: dict[str, Any] = {}


def body_reader(kind: type[T]) -> Callable[[Request], Coroutine[Any, Any, T]]:
    """A dependency that reads a request's body as a record.

    It raises `MalformedRequest` where the body is no JSON, or where a field is unknown, missing or of a wrong kind.
    """
    decoder = msgspec.json.Decoder(kind)

    async def read(request: Request) -> T:
        media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media != "application/json":  # which a form on another site cannot send
            raise MalformedRequest("A body of type application/json is expected.", status=415)
        raw = await request.body()
        try:
            return decoder.decode(raw)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise MalformedRequest(str(error)) from None

    return read


def json_response(data: Any, status: int = 200, **headers: str) -> Response:
    """An answer in JSON; what stands in it is data for every reader, whatever it says."""
    return Response(
        msgspec.json.encode(data),
        status,
        {name.replace("_", "-"): value for name, value in headers.items()},
        media_type="application/json",
    )


def openapi(
    answer: Any, *, body: Any = None, refusals: Iterable[int] = (), answers: dict[int, Any] | None = None
) -> dict[str, Any]:
    """What a route says of itself in OpenAPI, as arguments of FastAPI's decorators.

    Args:
        answer: the record of the answer 200.
        body: the record that is sent.
        refusals: statuses of errors, besides those that every call may answer with.
        answers: records of further statuses.
    """
    from veriglot.studio.schemas import ErrorAnswer

    responses: dict[int | str, dict[str, Any]] = {200: _answer("Done", answer)}
    usual = {400, 403, 404, 405, 413, 429, 503, *((415, 422) if body is not None else ()), *refusals}
    for status in sorted(usual):
        responses[status] = _answer(_MEANINGS[status], ErrorAnswer)
    for status, kind in (answers or {}).items():
        responses[status] = _answer(_MEANINGS[status], kind)
    extra: dict[str, Any] = {}
    if body is not None:
        extra["requestBody"] = {"required": True, "content": {"application/json": {"schema": _schema(body)}}}
    return {"responses": responses, "openapi_extra": extra, "response_model": None}


_MEANINGS = {
    400: "The request makes no sense.",
    401: "Nobody is signed in.",
    403: "The link, the origin or the CSRF token does not hold.",
    404: "There is no such thing, or it is somebody else's.",
    405: "There is no such call.",
    409: "It was changed elsewhere; what was sent is kept.",
    413: "This is too large.",
    415: "This is no JSON.",
    422: "What was sent does not fit.",
    429: "Too often; wait as long as Retry-After says.",
    503: "The database does not answer.",
}


def _answer(meaning: str, kind: Any) -> dict[str, Any]:
    return {"description": meaning, "content": {"application/json": {"schema": _schema(kind)}}}


def _schema(kind: Any) -> dict[str, Any]:
    (schema,), definitions = msgspec.json.schema_components([kind], ref_template=_REF)
    _DESCRIBED.update(definitions)
    return schema


def components() -> dict[str, Any]:
    """The schemas of all records that calls named."""
    return dict(_DESCRIBED)
