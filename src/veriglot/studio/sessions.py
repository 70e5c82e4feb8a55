"""Sessions: cookies from signed links, tokens against forged writes, roles, and rate limits.

The cookie holds the project's slug, a random token of which the store keeps only the hash, and our signature over
both: what was not made here never reaches the database. The CSRF token is a signature of the session's token: our page
is told of it by `/api/me` and sends it in a header, which another site can neither read nor set.
"""

from __future__ import annotations

import hmac
import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Request, Response
from limits import parse
from limits.storage import MemoryStorage
from limits.strategies import SlidingWindowCounterRateLimiter

from veriglot.studio.people import person_of_session
from veriglot.studio.responses import Forbidden, NotSignedIn, RateLimited
from veriglot.studio.tables import NotFound, Person, Role

if TYPE_CHECKING:
    from collections.abc import Mapping

    from veriglot.studio.settings import Settings, Studio, Studios

__all__ = [
    "Caller",
    "Lead",
    "LeadWriter",
    "Rates",
    "SignedIn",
    "Writer",
    "client_address",
    "delete_cookie",
    "require_lead",
    "set_cookie",
]


CSRF_HEADER = "X-CSRF-Token"
_COOKIE = "veriglot_session"
_LONGEST = 512


@dataclass(frozen=True)
class Caller:
    """Somebody who is signed in.

    Attributes:
        studio: the project that they belong to.
        person: who they are.
        token: of their session.
    """

    studio: Studio
    person: Person
    token: str

    @property
    def csrf(self) -> str:
        """What a write has to bring."""
        return self.studio.sign("csrf", self.token)


def client_address(request: Request) -> str:
    """Where a request came from; behind a proxy that the settings trust, what that says."""
    return "-" if request.client is None else request.client.host


def _signed_in(request: Request) -> Caller:
    studios: Studios = request.app.state.studios
    rates: Rates = request.app.state.rates
    session = _session(studios, request.cookies.get(cookie_name(request.app.state.settings), ""))
    if session is None:
        rates.count("stranger", client_address(request))
        raise NotSignedIn
    studio, token = session
    rates.count("call", token)
    with studio.store.reading() as tx:
        person = person_of_session(tx, token)
    if person is None or person.project_id != studio.id:
        rates.count("stranger", client_address(request))
        raise NotSignedIn
    return Caller(studio, person, token)


def _session(studios: Studios, cookie: str) -> tuple[Studio, str] | None:
    """The project and the token of a cookie that was made here."""
    if not cookie or len(cookie) > _LONGEST or not cookie.isascii() or cookie.count(".") != 2:
        return None
    slug, token, signature = cookie.split(".")
    studio = studios.get(slug)
    if studio is None or not studio.signed("session", f"{slug}.{token}", signature):
        return None
    return studio, token


def require_lead(request: Request) -> Caller:
    """The lead who asks.

    Raises:
        NotSignedIn: nobody does.
        NotFound: somebody else does; what they may not see is not there.
    """
    return _lead(_signed_in(request))


def _lead(caller: Caller) -> Caller:
    if caller.person.role is not Role.LEAD:
        raise NotFound("page")
    return caller


# What follows waits for nothing, so it is asynchronous: a thread less for each call.


async def _signed_in_lead(caller: Annotated[Caller, Depends(_signed_in)]) -> Caller:
    return _lead(caller)


def _check_csrf(request: Request, caller: Caller) -> Caller:
    brought = request.headers.get(CSRF_HEADER, "")
    if not brought.isascii() or not hmac.compare_digest(brought, caller.csrf):
        raise Forbidden("The request does not carry this session's CSRF token.", "csrf")
    request.app.state.rates.count("write", caller.token)
    return caller


async def _writer(request: Request, caller: Annotated[Caller, Depends(_signed_in)]) -> Caller:
    return _check_csrf(request, caller)


async def _lead_writer(request: Request, caller: Annotated[Caller, Depends(_signed_in_lead)]) -> Caller:
    return _check_csrf(request, caller)


SignedIn = Annotated[Caller, Depends(_signed_in)]
"""Whoever reads: signed in."""
Lead = Annotated[Caller, Depends(_signed_in_lead)]
"""A lead who reads; for others there is no such page."""
Writer = Annotated[Caller, Depends(_writer)]
"""Whoever writes: signed in, from our page."""
LeadWriter = Annotated[Caller, Depends(_lead_writer)]
"""A lead who writes."""


def cookie_name(settings: Settings) -> str:
    """The cookie's name; browsers hold `__Host-` to be from this host alone, over HTTPS."""
    secure = settings.origin is not None and settings.origin.startswith("https:")
    return f"__Host-{_COOKIE}" if secure and not settings.path else _COOKIE


def set_cookie(request: Request, response: Response, studio: Studio, token: str) -> None:
    """Put a session's cookie on an answer."""
    settings: Settings = request.app.state.settings
    signed = f"{studio.slug}.{token}"
    response.set_cookie(
        cookie_name(settings),
        f"{signed}.{studio.sign('session', signed)}",
        max_age=studio.project.entries.people.session_days * 86_400,
        path=settings.path or "/",
        secure=_is_https(request),
        httponly=True,
        samesite="lax",
    )


def delete_cookie(request: Request, response: Response) -> None:
    """Take the cookie away."""
    settings: Settings = request.app.state.settings
    response.delete_cookie(
        cookie_name(settings),
        path=settings.path or "/",
        secure=_is_https(request),
        httponly=True,
        samesite="lax",
    )


def _is_https(request: Request) -> bool:
    settings: Settings = request.app.state.settings
    if settings.origin is not None:
        return settings.origin.startswith("https:")
    return request.url.scheme == "https"


class Rates:
    """Counters of calls. A kind without a limit is not counted."""

    def __init__(self, rates: Mapping[str, str]) -> None:
        """Take limits by kind, in the notation of `limits`, such as `30/minute`."""
        self._limits = {kind: parse(rate) for kind, rate in rates.items()}
        self._counter = SlidingWindowCounterRateLimiter(MemoryStorage())

    def count(self, kind: str, caller: str) -> None:
        """Count a call.

        Raises:
            RateLimited: it is one too many.
        """
        limit = self._limits.get(kind)
        if limit is not None and not self._counter.hit(limit, kind, caller):
            reset = self._counter.get_window_stats(limit, kind, caller).reset_time
            raise RateLimited(max(1, math.ceil(reset - time.time())))
