"""Shared by all endpoints: the operator's settings, served projects, sessions and rate limits, JSON in and out.

Each project has its own cookie, so that one browser can use several. It has the project's slug, a random token (the
store has only its hash), the time, and our signature over all: forged cookies never reach the database. A page names
its project in `X-Project`; without the header, it is the project joined last. The CSRF token is a signature of the
session's token: our page gets it from `/api/me` and sends it in a header, which another site can neither read nor set.
Information about proxies, hosts or schemes is trusted only if the settings say so.
"""

from __future__ import annotations

import errno
import functools
import hmac
import inspect
import logging
import math
import os
import secrets
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec
from fastapi import APIRouter, Depends, FastAPI, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from itsdangerous import BadData, BadSignature, TimestampSigner, URLSafeSerializer
from limits import parse
from limits.storage import MemoryStorage
from limits.strategies import SlidingWindowCounterRateLimiter
from sqlalchemy.exc import DataError, SQLAlchemyError
from starlette.exceptions import HTTPException

from veriglot.errors import InputError, UsageError, VeriglotError
from veriglot.http.server import (
    CallRefused,
    ErrorAnswer,
    ErrorView,
    ServerSettings,
    error_json,
    internal_error,
    json_response,
)
from veriglot.plugins import read_package_data
from veriglot.records.settings import Record
from veriglot.studio.items import register_project
from veriglot.studio.layers import Layer
from veriglot.studio.project import Project, changed_settings
from veriglot.studio.store import ReadTransaction, Store, open_store
from veriglot.studio.tables import Conflict, DiskFullError, NotFound, Person, Role, State, StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path as FilePath


__all__ = [
    "Caller",
    "InvitationError",
    "Lead",
    "LeadWriter",
    "Number",
    "Rates",
    "Router",
    "Settings",
    "SignedIn",
    "Studio",
    "Studios",
    "Tag",
    "Writer",
    "client_address",
    "dead_links",
    "delete_cookie",
    "error_response",
    "install_handlers",
    "record_schemas",
    "require_lead",
    "set_cookie",
    "signed_in_studios",
    "view",
]

RATES: Mapping[str, str] = {
    "join": "240/minute",  # by address: attempts to open links; a whole team may share one address
    "stranger": "120/minute",  # by address: calls without a valid session
    "call": "20/second",  # by session
    "write": "600/minute",  # by session
    "heavy": "30/minute",  # by session: figures and exports
}


@dataclass(frozen=True)
class Settings(ServerSettings):
    """Settings of a studio's server.

    Attributes:
        rates: rate limits by kind of call, in the notation of `limits`; see `RATES`.
        open_api: whether everybody may read `/api/openapi.json`, not only leads.
    """

    rates: Mapping[str, str] = field(default_factory=lambda: dict(RATES))
    open_api: bool = False


_VARIABLE = "VERIGLOT_STUDIO_SECRET"
_SHORTEST_SECRET = 32
_LINKS = "veriglot.studio.invitation"
_PATIENCE = 5.0  # maximum seconds that a change waits for another


class InvitationError(UsageError):
    """An invalid link.

    Attributes:
        reason: `forged`, `unknown`, `expired` or `revoked`.
    """

    def __init__(self, reason: str) -> None:
        messages = {
            "forged": "This link is damaged or was not made here.",
            "unknown": "This link is no longer valid.",
            "expired": "This link has expired.",
            "revoked": "This link was withdrawn.",
        }
        super().__init__(messages[reason], "Ask whoever sent it for a new one.")
        self.reason = reason


def _secret_path(project: Project) -> FilePath:
    return project.path.parent / f"{project.slug}.secret"


def _secret_of(project: Project) -> bytes:
    """The secret that signs links: from the environment, or a file beside the project file, created if missing."""
    given = os.environ.get(_VARIABLE)
    if given is not None:
        if len(given) < _SHORTEST_SECRET:
            raise StoreError(f"{_VARIABLE} has fewer than {_SHORTEST_SECRET} characters.", "Set a longer one.")
        return given.encode()
    path = _secret_path(project)
    try:
        return _secret_in(path)
    except OSError as error:
        raise StoreError(f"{path} cannot be used: {error.strerror}.", f"Or set {_VARIABLE}.") from error


def _secret_in(path: FilePath) -> bytes:
    new = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    if not path.exists():
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_urlsafe(48) + "\n")
        try:
            os.link(new, path)  # atomic; if two processes create it, the first wins
        except FileExistsError:
            pass
        finally:
            new.unlink()
    secret = path.read_bytes().strip()
    if len(secret) < _SHORTEST_SECRET:
        raise StoreError(f"{path} is damaged.", "Delete it; links that were sent then need to be renewed.")
    return secret


# The store records, as events, which secret signed which links, so that invalid links can be detected.


_SIGNED = "signed_with"


def _fingerprint(secret: bytes) -> str:
    return hmac.new(secret, b"veriglot.studio.fingerprint", "sha256").hexdigest()[:16]


def _signers(tx: ReadTransaction, project_id: int) -> dict[str, str]:
    """Public ids of people to the fingerprint of the secret of their link; the empty id is for the next link."""
    signers: dict[str, str] = {}
    for entry in tx.events(project_id, kind=(_SIGNED, "invited", "renewed")):
        payload = entry.payload or {}
        if entry.kind != _SIGNED:
            signers[payload["person"]] = signers.get("", "")
        else:  # people invited by older versions have no such event: their links have the first secret
            signers = {**(signers if "" in signers else dict.fromkeys(signers, payload["by"])), "": payload["by"]}
    return signers


def _remember_signer(store: Store, project_id: int, secret: bytes) -> None:
    by = _fingerprint(secret)
    with store.reading() as tx:
        known = _signers(tx, project_id).get("") == by
    if not known:
        with store.writing() as tx:
            tx.record(_SIGNED, project_id, payload={"by": by})


def dead_links(store: Store, project: Project) -> str:
    """People whose links are invalid because another secret signed them, and what to do; empty if there are none."""
    path, given = _secret_path(project), os.environ.get(_VARIABLE)
    secret = given.encode() if given is not None else path.read_bytes().strip() if path.is_file() else b""
    with store.reading() as tx:
        people = tx.people(tx.project(project.slug).id)
        signers = _signers(tx, people[0].project_id) if people else {}
    by = _fingerprint(secret) if secret else None
    dead = sum(
        signers.get(person.public_id) not in {by, ""} or by is None for person in people if not person.revoked_at
    )
    if not dead:
        return ""
    return (
        f"the links of {dead:,} people open nothing here: they were signed with another secret, which no backup holds."
        f" Copy {path.name} from where the project was served to {path} (or set {_VARIABLE}), or give everybody a new"
        " link on the page People."
    )


@dataclass(frozen=True, eq=False)
class Studio:
    """A served project; compared by identity, so that it can be a cache key.

    Attributes:
        project: its file, parsed.
        store: its database; projects may share one.
        id: of its row in the store.
        secret: signs its links and cookies.
    """

    project: Project
    store: Store
    id: int
    secret: bytes

    @property
    def slug(self) -> str:
        """The project's slug."""
        return self.project.slug

    def signer(self, purpose: str) -> TimestampSigner:
        """The signer of texts for one purpose."""
        return TimestampSigner(self.secret, salt=f"veriglot.studio.{purpose}", key_derivation="hmac")

    def link_token(self, key: str) -> str:
        """The token in a person's link: the slug and their key, signed."""
        return str(URLSafeSerializer(self.secret, salt=_LINKS).dumps([self.slug, key]))

    def read_token(self, token: str) -> tuple[str, str]:
        """Slug and key of a link.

        Raises:
            InvitationError: `forged`: not signed with this secret.
        """
        try:
            slug, key = URLSafeSerializer(self.secret, salt=_LINKS).loads(token)
        except (BadData, TypeError, ValueError):
            raise InvitationError("forged") from None
        return str(slug), str(key)


class Studios:
    """All projects of a server, by slug."""

    def __init__(self, projects: Sequence[Project], database: str | None = None) -> None:
        """Open the stores."""
        self._stores: dict[str, Store] = {}
        self.by_slug: dict[str, Studio] = {}
        self._changing: dict[str, threading.Lock] = {}
        if not projects:
            raise UsageError("There is no project to serve.")
        try:
            for project in projects:
                self._add(project, database or project.database)
        except BaseException:
            self.close()
            raise

    def _add(self, project: Project, database: str) -> None:
        if project.slug in self.by_slug:
            raise UsageError(f"Two projects have the slug {project.slug!r}.", "Give each a slug of its own.")
        if database not in self._stores:
            self._stores[database] = open_store(database)
        store, secret = self._stores[database], _secret_of(project)
        studio = Studio(project, store, register_project(store, project).id, secret)
        _remember_signer(store, studio.id, secret)
        self.by_slug[project.slug] = studio
        self._changing[project.slug] = threading.Lock()

    @contextmanager
    def changing(self, slug: str) -> Iterator[Studio]:
        """The current studio of a project, for an import or a change of settings: one at a time."""
        if not self._changing[slug].acquire(timeout=_PATIENCE):
            raise CallRefused(503, "unavailable", "An import is running.", "Try again when it has ended.")
        try:
            yield self.by_slug[slug]
        finally:
            self._changing[slug].release()

    def change(self, studio: Studio, changes: Mapping[tuple[str, str], Any], *, by: int) -> Studio:
        """The project with other settings (`changed_settings`), served from now on."""
        with changed_settings(studio.project, changes) as project, studio.store.writing() as tx:
            if project.name != studio.project.name:
                tx.update_project(studio.id, name=project.name)
            tx.record("settings", studio.id, payload={key: value for (_, key), value in changes.items()}, person_id=by)
        self.by_slug[studio.slug] = replace(studio, project=project)
        return self.by_slug[studio.slug]

    def __iter__(self) -> Iterator[Studio]:
        return iter(self.by_slug.values())

    def of_token(self, token: str) -> Studio:
        """The project of an invitation.

        Raises:
            InvitationError: none; no secret of this server signed it.
        """
        for studio in self:
            try:
                slug, _ = studio.read_token(token)
            except InvitationError:
                continue
            if slug == studio.slug:  # several projects may have the same secret from the environment
                return studio
        raise InvitationError("forged")

    def check(self) -> None:
        """Raise the store's error if a database does not respond or has no space."""
        for store in self._stores.values():
            store.check()

    def close(self) -> None:
        """Close the stores."""
        for store in self._stores.values():
            store.close()


# Errors as JSON, without internal details.


_LOG = logging.getLogger("veriglot.studio")


def error_response(error: Exception) -> Response:
    """The answer to an error."""
    match error:
        case VeriglotError() if not isinstance(error, StoreError):
            return _expected_error(error)
        case DataError():  # such as a null character, which PostgreSQL does not store in texts
            return error_json(422, "malformed", "This holds characters or numbers that cannot be kept.")
        case DiskFullError() | OSError(errno=errno.ENOSPC):
            return _internal_error(error, 507, "disk_full", "The disk of the server is full; nothing was changed.")
        case StoreError() | SQLAlchemyError():
            return _internal_error(error, 503, "unavailable", "The database does not answer; nothing was changed.")
        case HTTPException():
            code, message = {
                404: ("not_found", "There is no such page."),
                405: ("no_such_call", "This cannot be called in this way."),
            }.get(error.status_code, ("refused", "This cannot be answered."))
            return error_json(error.status_code, code, message, headers=error.headers)
        case RequestValidationError():
            return error_json(422, "malformed", "A part of the address or the query does not fit.")
        case _:
            return _internal_error(error, 500, "internal", "Something went wrong here.")


def _expected_error(error: VeriglotError) -> Response:
    """The answer to an error with a message for users."""
    message, remedy = error.message, error.remedy
    match error:
        case CallRefused():
            return error_json(error.status, error.code, message, remedy, headers=error.headers)
        case Conflict():
            return error_json(
                409, "conflict", message, remedy, version=error.version, state=error.state, layer=error.layer
            )
        case InputError():
            return error_json(422, "unfit", error.detail, remedy, field=error.field)
        case NotFound():
            return error_json(404, "not_found", message, remedy)
        case InvitationError():
            return error_json(403, f"invitation_{error.reason}", message, remedy)
        case _:
            return error_json(422, "refused", message, remedy)


def _internal_error(error: Exception, status: int, code: str, message: str) -> Response:
    return internal_error(status, code, message, lambda number: _LOG.error("failure %s", number, exc_info=error))


def install_handlers(app: FastAPI) -> None:
    """Answer every error of an app like this."""

    def handle(request: Request, error: Exception) -> Response:
        response = error_response(error)
        if response.status_code in {401, 404} and "text/html" in request.headers.get("accept", ""):
            page: Response = request.app.state.page.index_response()  # a person: the page says what to do
            page.status_code = response.status_code
            return page
        return response

    for kind in (VeriglotError, HTTPException, RequestValidationError, SQLAlchemyError, Exception):
        app.add_exception_handler(kind, handle)


# Authentication and rate limits.


_COOKIE = "veriglot_session"


@dataclass(frozen=True)
class Caller:
    """A signed-in caller: the project, the person, the session's token, and the request."""

    studio: Studio
    person: Person
    token: str
    request: Request

    @property
    def csrf(self) -> str:
        """The token that a write must send."""
        return self.studio.signer("csrf").get_signature(self.token).decode()

    @property
    def reads_only(self) -> bool:
        """Whether the caller is a script."""
        return _session(self.request) is None

    def count(self, kind: str) -> None:
        """Count a call of this session; see `Rates.count`."""
        self.request.app.state.rates.count(kind, self.token)


def client_address(request: Request) -> str:
    """The client's address; behind a trusted proxy, the address that the proxy reports."""
    return "-" if request.client is None else request.client.host


def _signed_in(request: Request) -> Caller:
    rates: Rates = request.app.state.rates
    session = _session(request) or _script(request)
    if session is not None:
        studio, token = session
        rates.count("call", token)
        with studio.store.reading() as tx:
            person = tx.person_of_session(token)
        if person is not None and person.project_id == studio.id:
            return Caller(studio, person, token, request)
    rates.count("stranger", client_address(request))
    message = "You are not signed in here, or your session is over."
    if any(studio.project.entries.sign_in for studio in request.app.state.studios):
        raise CallRefused(401, "sign_in", message, "Sign in, or open your own link again.")
    raise CallRefused(401, "not_signed_in", message, "Open your own link again; a script needs a valid token.")


def _session(request: Request) -> tuple[Studio, str] | None:
    """The project and token of a valid cookie; with cookies of several projects, that of the page, or the newest.

    A download cannot set a header: it names its project in the query.
    """
    named = request.headers.get("x-project") or request.query_params.get("project")
    sessions = [session for session in _sessions(request) if named in {None, session[1].slug}]
    newest = max(sessions, key=itemgetter(0), default=None)
    return None if newest is None else newest[1:]


def _sessions(request: Request) -> Iterator[tuple[datetime, Studio, str]]:
    """Time, project and token of each valid cookie."""
    for studio in request.app.state.studios:
        cookie = request.cookies.get(_cookie(request, studio)["key"])
        try:
            signed, at = studio.signer("session").unsign(cookie or "", return_timestamp=True)
        except (BadSignature, ValueError):
            continue
        slug, _, token = signed.decode().partition(".")
        if slug == studio.slug:  # several projects may have the same secret from the environment
            yield at, studio, token


def signed_in_studios(request: Request) -> list[Studio]:
    """The projects that a browser is signed in to, by name."""
    result = []
    for _, studio, token in _sessions(request):
        with studio.store.reading() as tx:
            person = tx.person_of_session(token)
        if person is not None and person.project_id == studio.id:
            result.append(studio)
    return sorted(result, key=lambda studio: studio.project.name)


def _script(request: Request) -> tuple[Studio, str] | None:
    """The project and token of a script (`people.make_token`), which has read access only."""
    scheme, _, value = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        return None
    if request.method != "GET":
        raise CallRefused(403, "reads_only", "The token of a script only reads.", "Sign in with a browser.")
    for studio in request.app.state.studios:
        try:
            slug, _, token = studio.signer("script").unsign(value.strip()).decode().partition(".")
        except (BadSignature, ValueError):
            continue
        if slug == studio.slug:
            return studio, token
    return None


def require_lead(request: Request) -> Caller:
    """The calling lead; others get "not found", so that they learn nothing."""
    return _lead(_signed_in(request))


def _lead(caller: Caller) -> Caller:
    if caller.person.role is not Role.LEAD:
        raise NotFound("page")
    return caller


# The following functions do not block, so they are asynchronous, which saves a thread for each call.


async def _signed_in_lead(caller: Annotated[Caller, Depends(_signed_in)]) -> Caller:
    return _lead(caller)


def _check_csrf(request: Request, caller: Caller) -> Caller:
    token = request.headers.get("X-CSRF-Token", "")
    if not token.isascii() or not hmac.compare_digest(token, caller.csrf):
        message = "The request does not carry this session's CSRF token."
        raise CallRefused(403, "csrf", message, "Reload the page.")
    caller.count("write")
    return caller


async def _writer(request: Request, caller: Annotated[Caller, Depends(_signed_in)]) -> Caller:
    return _check_csrf(request, caller)


async def _lead_writer(request: Request, caller: Annotated[Caller, Depends(_signed_in_lead)]) -> Caller:
    return _check_csrf(request, caller)


SignedIn = Annotated[Caller, Depends(_signed_in)]
"""A signed-in reader."""
Lead = Annotated[Caller, Depends(_signed_in_lead)]
"""A lead who reads; others get "not found"."""
Writer = Annotated[Caller, Depends(_writer)]
"""A signed-in writer, from our page."""
LeadWriter = Annotated[Caller, Depends(_lead_writer)]
"""A lead who writes."""


def set_cookie(request: Request, response: Response, studio: Studio, token: str) -> None:
    """Set a session's cookie on an answer."""
    value = studio.signer("session").sign(f"{studio.slug}.{token}").decode()
    age = studio.project.entries.people.session_days * 86_400
    response.set_cookie(value=value, max_age=age, **_cookie(request, studio))


def delete_cookie(request: Request, response: Response, studio: Studio) -> None:
    """Delete a project's cookie."""
    response.delete_cookie(**_cookie(request, studio))


def _cookie(request: Request, studio: Studio) -> dict[str, Any]:
    settings: Settings = request.app.state.settings
    secure = request.url.scheme == "https" if settings.origin is None else settings.is_https
    # Browsers accept `__Host-` cookies only from exactly this host, over HTTPS.
    name = f"{'__Host-' if settings.is_https and not settings.path else ''}{_COOKIE}_{studio.slug}"
    return {"key": name, "path": settings.path or "/", "secure": secure, "httponly": True, "samesite": "lax"}


class Rates:
    """Rate limits. A kind without a limit is not counted."""

    def __init__(self, rates: Mapping[str, str]) -> None:
        """Limits by kind, in the notation of `limits`, such as `30/minute`."""
        self._limits = {kind: parse(rate) for kind, rate in rates.items()}
        self._counter = SlidingWindowCounterRateLimiter(MemoryStorage())

    def count(self, kind: str, caller: str) -> None:
        """Count a call.

        Raises:
            CallRefused: the limit is exceeded.
        """
        limit = self._limits.get(kind)
        if limit is not None and not self._counter.hit(limit, kind, caller):
            reset = self._counter.get_window_stats(limit, kind, caller).reset_time
            wait = str(max(1, math.ceil(reset - time.time())))
            message = "This was called too often."
            raise CallRefused(429, "too_often", message, f"Try again in {wait} s.", retry_after=wait)


# JSON in and out: strictly decoded into records, encoded from records, and described in OpenAPI by the same records.


T = TypeVar("T")
F = TypeVar("F", bound="Callable[..., Any]")
_MEANINGS = read_package_data(__package__, "meanings.json", dict[int, str])
_described: dict[str, Any] = {}


class ConflictAnswer(Record):
    """The answer to an event that came too late: the current state. The event stays in the history."""

    error: ErrorView
    version: int
    state: State
    layer: Layer


class Router(APIRouter):
    """Endpoints of one part of the studio."""

    def call(self, method: str, path: str, *, answer: Any = None, pending: Any = None) -> Callable[[F], F]:
        """Decorator: make a function an endpoint. Its result is sent as JSON, and a parameter that is a record is the
        body.

        Args:
            method: of HTTP.
            path: with parameter names in braces.
            answer: the record of the answer, if the function returns a `Response`.
            pending: the record that is sent with 202 while there is no answer yet.
        """

        def register(function: F) -> F:
            signature = inspect.signature(function, eval_str=True)
            body: Any = None
            parameters = []
            for parameter in signature.parameters.values():
                kind = parameter.annotation
                if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
                    body, kind = kind, Annotated[kind, Depends(_body_reader(kind))]
                parameters.append(parameter.replace(annotation=kind))

            @functools.wraps(function)
            def answered(**arguments: Any) -> Response:
                result = function(**arguments)
                return result if isinstance(result, Response) else json_response(result)

            answered.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
            statuses = {400, 403, 404, 405, 413, 422, 429, 503, 507} | (
                {401} if "caller" in signature.parameters else set()
            )
            responses: dict[int | str, dict[str, Any]] = {200: _answer(200, answer or signature.return_annotation)}
            responses |= {status: _answer(status, ErrorAnswer) for status in sorted(statuses)}
            responses |= {} if pending is None else {202: _answer(202, pending)}
            extra = {}
            if body is not None:
                content = {"application/json": {"schema": _schema(body)}}
                extra["requestBody"] = {"required": True, "content": content}
                responses |= {409: _answer(409, ConflictAnswer), 415: _answer(415, ErrorAnswer)}
            self.add_api_route(
                path, answered, methods=[method], responses=responses, openapi_extra=extra, response_model=None
            )
            return function

        return register


def _body_reader(kind: type[T]) -> Callable[[Request], Any]:
    """A dependency that reads a request's body: JSON with exactly the fields of the record."""
    decoder = msgspec.json.Decoder(kind)

    async def read(request: Request) -> T:
        media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media != "application/json":  # a form on another site cannot send this
            raise CallRefused(415, "malformed", "A body of type application/json is expected.")
        raw = await request.body()
        try:
            return decoder.decode(raw)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise CallRefused(422, "malformed", str(error)) from None

    return read


def _answer(status: int, kind: Any) -> dict[str, Any]:
    file = {"application/zip": {"schema": {"type": "string", "format": "binary"}}}
    content = file if kind is Response else {"application/json": {"schema": _schema(kind)}}
    return {"description": _MEANINGS[status], "content": content}


def _schema(kind: Any) -> dict[str, Any]:
    (schema,), definitions = msgspec.json.schema_components([kind], ref_template="#/components/schemas/{name}")
    _described.update(definitions)
    return schema


def record_schemas() -> dict[str, Any]:
    """The schemas of all records of endpoints."""
    return dict(_described)


Tag = Annotated[str | None, Query(max_length=64)]
"""A language in a query."""
Number = Annotated[int, Path(ge=1, le=2**31 - 1)]
"""An id in a path."""
V = TypeVar("V", bound=msgspec.Struct)


def view(kind: type[V], row: Any, **more: Any) -> V:
    """A record with the fields of the same names from a row, and `more`."""
    fields = (name for name in kind.__struct_fields__ if name not in more)
    return kind(**{name: getattr(row, name) for name in fields}, **more)
