"""JSON in and out: decoded strictly into records, encoded from them, and described in OpenAPI by the same records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from fastapi import Request, Response

from veriglot.web.studio.failures import Malformed

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable

__all__ = ["body_of", "components", "described", "reply"]

T = TypeVar("T")
_REF = "#/components/schemas/{name}"
_DESCRIBED: dict[str, Any] = {}


def body_of(kind: type[T]) -> Callable[[Request], Coroutine[Any, Any, T]]:
    """A dependency that reads a request's body as a record.

    It raises `Malformed` where the body is no JSON, or where a field is unknown, missing or of a wrong kind.
    """
    decoder = msgspec.json.Decoder(kind)

    async def read(request: Request) -> T:
        media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media != "application/json":  # which a form on another site cannot send
            raise Malformed("A body of type application/json is expected.", status=415)
        raw = await request.body()
        try:
            return decoder.decode(raw)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise Malformed(str(error)) from None

    return read


def reply(data: Any, status: int = 200, **headers: str) -> Response:
    """An answer in JSON; what stands in it is data for every reader, whatever it says."""
    return Response(
        msgspec.json.encode(data),
        status,
        {name.replace("_", "-"): value for name, value in headers.items()},
        media_type="application/json",
    )


def described(
    answer: Any, *, body: Any = None, refusals: Iterable[int] = (), answers: dict[int, Any] | None = None
) -> dict[str, Any]:
    """What a route says of itself in OpenAPI, as arguments of FastAPI's decorators.

    Args:
        answer: the record of the answer 200.
        body: the record that is sent.
        refusals: statuses of errors, besides those that every call may answer with.
        answers: records of further statuses.
    """
    from veriglot.web.studio.views import ErrorAnswer

    said: dict[int | str, dict[str, Any]] = {200: _answer("Done", answer)}
    usual = {400, 403, 404, 405, 413, 429, 503, *((415, 422) if body is not None else ()), *refusals}
    for status in sorted(usual):
        said[status] = _answer(_MEANINGS[status], ErrorAnswer)
    for status, kind in (answers or {}).items():
        said[status] = _answer(_MEANINGS[status], kind)
    extra: dict[str, Any] = {}
    if body is not None:
        extra["requestBody"] = {"required": True, "content": {"application/json": {"schema": _schema(body)}}}
    return {"responses": said, "openapi_extra": extra, "response_model": None}


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
    (schema,), found = msgspec.json.schema_components([kind], ref_template=_REF)
    _DESCRIBED.update(found)
    return schema


def components() -> dict[str, Any]:
    """The schemas of all records that calls named."""
    return dict(_DESCRIBED)
