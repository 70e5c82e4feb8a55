"""Sign-in by OpenID Connect, in addition to links: for people invited by an e-mail address that the provider verified.

It is the authorization code flow of a confidential client with PKCE (OpenID Connect Core 1.0, section 3.1; RFC 7636).
The ID token comes directly from the provider over TLS, so its signature need not be checked (3.1.3.7, item 6). One
sign-in opens all projects of a server with the same provider that invited the same address.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import secrets
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import msgspec
from fastapi import APIRouter, Request, Response
from itsdangerous import BadData, URLSafeTimedSerializer

from veriglot.errors import UsageError
from veriglot.http.server import CallRefused
from veriglot.studio.people import base_address, renew, start_session
from veriglot.studio.tables import NotFound, Person
from veriglot.studio.web import Studio, Studios, client_address, set_cookie

if TYPE_CHECKING:
    from collections.abc import Iterator

    from veriglot.studio.project import SignInEntry

__all__ = ["check_secret", "router"]

_VARIABLE = "VERIGLOT_STUDIO_OIDC_SECRET"
_COOKIE = "veriglot_sign_in"
_PATIENCE = 600  # maximum seconds at the provider
_TIMEOUT = 10.0  # seconds of a call to the provider
_CLOCKS_DIFFER = 60.0  # seconds

router = APIRouter(include_in_schema=False)  # only for browsers; programs have tokens


class _Provider(msgspec.Struct):
    """Metadata of a provider (OpenID Connect Discovery 1.0, section 3)."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str


class _Claims(msgspec.Struct):
    """The claims of an ID token."""

    iss: str
    aud: str | list[str]
    exp: float
    nonce: str | None = None
    email: str = ""
    email_verified: bool | str = False


def check_secret(studios: Studios) -> None:
    """Refuse to serve a project with a provider but no client secret."""
    for studio in studios:
        if studio.project.entries.sign_in is not None and not os.environ.get(_VARIABLE):
            message = f"{studio.slug} names a provider under [sign_in], and {_VARIABLE} is not set."
            raise UsageError(message, f"Type: export {_VARIABLE}=<the client secret>")


@router.get("/api/sign-in")
def begin(request: Request, project: str | None = None) -> Response:
    """Redirect to the provider of a project, or of the first project that has one."""
    request.app.state.rates.count("stranger", client_address(request))
    studio, entry = next(_with_provider(request, project), (None, None))
    if studio is None or entry is None:
        raise NotFound("page")
    provider = _provider(entry)
    state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    query = {
        "response_type": "code",
        "client_id": entry.client_id,
        "redirect_uri": _redirect_uri(request),
        "scope": "openid email",
        "state": state,
        "nonce": nonce,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
    }
    separator = "&" if "?" in provider.authorization_endpoint else "?"
    answer = _redirect(f"{provider.authorization_endpoint}{separator}{urlencode(query)}")
    answer.set_cookie(value=_signer(studio).dumps([state, nonce, verifier]), max_age=_PATIENCE, **_cookie(request))
    return answer


@router.get("/api/signed-in")
def end(request: Request, code: str = "", state: str = "") -> Response:
    """Handle the redirect from the provider: to the person's projects, or first to the consent page."""
    request.app.state.rates.count("stranger", client_address(request))
    studio, entry, nonce, verifier = _begun(request, state)
    base = base_address(request)
    if not code:  # the person cancelled, or the provider does not know them
        return _redirect(f"{base}/#refused")
    email = _email(entry, _id_token(request, entry, code, verifier), nonce)
    answer, opened = _redirect(f"{base}/?project={studio.slug}"), False
    for other in request.app.state.studios:
        person = _invited(other, email) if other.project.entries.sign_in == entry else None
        if person is None:
            continue
        with other.store.writing(lock="people") as tx:
            if person.joined_at is not None:
                set_cookie(request, answer, other, start_session(tx, other, person))
                opened = True
            elif other is studio:
                answer.headers["location"] = f"{base}/join/{renew(tx, other, person.id, by=person.id).token}"
                opened = True
    answer.delete_cookie(**_cookie(request))
    if not opened:
        answer.headers["location"] = f"{base}/#refused"
    return answer


def _with_provider(request: Request, slug: str | None) -> Iterator[tuple[Studio, SignInEntry]]:
    for studio in request.app.state.studios:
        entry = studio.project.entries.sign_in
        if entry is not None and slug in {None, studio.slug}:
            yield studio, entry


def _redirect(address: str) -> Response:
    return Response(status_code=303, headers={"location": address})


def _redirect_uri(request: Request) -> str:
    return f"{base_address(request)}/api/signed-in"


def _cookie(request: Request) -> dict[str, Any]:
    settings = request.app.state.settings
    secure = settings.is_https or request.url.scheme == "https"
    return {"key": _COOKIE, "path": settings.path or "/", "secure": secure, "httponly": True, "samesite": "lax"}


def _signer(studio: Studio) -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(studio.secret, salt=f"veriglot.studio.sign_in.{studio.slug}")


def _begun(request: Request, state: str) -> tuple[Studio, SignInEntry, str, str]:
    """The project, nonce and verifier of a sign-in that this browser started here recently."""
    for studio, entry in _with_provider(request, None):
        with suppress(BadData):
            before, nonce, verifier = _signer(studio).loads(request.cookies.get(_COOKIE, ""), max_age=_PATIENCE)
            if hmac.compare_digest(before.encode(), state.encode()):
                return studio, entry, nonce, verifier
    raise CallRefused(403, "sign_in", "This sign-in was not begun here, or took too long.", "Sign in once more.")


def _provider(entry: SignInEntry) -> _Provider:
    issuer = entry.issuer.rstrip("/")
    provider: _Provider = _ask(f"{issuer}/.well-known/openid-configuration", _Provider)
    if provider.issuer.rstrip("/") != issuer:
        raise _failed(f"it calls itself {provider.issuer}")
    if issuer.startswith("https:") and not provider.token_endpoint.startswith("https:"):
        raise _failed("it gives tokens without TLS")  # TLS replaces the signature check
    return provider


def _id_token(request: Request, entry: SignInEntry, code: str, verifier: str) -> str:
    """The ID token for an authorization code."""
    form = {"grant_type": "authorization_code", "code": code, "code_verifier": verifier}
    form["redirect_uri"] = _redirect_uri(request)
    auth = entry.client_id, os.environ.get(_VARIABLE, "")
    answer = _ask(_provider(entry).token_endpoint, dict[str, Any], data=form, auth=auth)
    return str(answer.get("id_token", ""))


def _ask(address: str, kind: Any, **form: Any) -> Any:
    """Send a request to the provider."""
    import httpx2

    try:
        with httpx2.Client(timeout=_TIMEOUT) as client:
            answer = client.post(address, **form) if form else client.get(address)
        answer.raise_for_status()
        return msgspec.json.decode(answer.content, type=kind)
    except (httpx2.HTTPError, httpx2.InvalidURL, msgspec.MsgspecError) as error:
        raise _failed(type(error).__name__) from error


def _failed(why: str) -> CallRefused:
    remedy = "Try again; if it stays, tell whoever runs this, or open your own link."
    return CallRefused(503, "sign_in", f"The provider of the sign-in cannot be used ({why}).", remedy)


def _email(entry: SignInEntry, id_token: str, nonce: str) -> str:
    """The verified address in an ID token, after all required checks of its claims (Core, section 3.1.3.7)."""
    part = id_token.split(".")[1] if id_token.count(".") == 2 else ""
    try:
        claims = msgspec.json.decode(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)), type=_Claims)
    except (binascii.Error, msgspec.MsgspecError, ValueError) as error:
        raise _failed("its token cannot be read") from error
    audience = [claims.aud] if isinstance(claims.aud, str) else claims.aud
    if claims.iss.rstrip("/") != entry.issuer.rstrip("/") or audience != [entry.client_id] or claims.nonce != nonce:
        raise _failed("its token is for somebody else")
    if claims.exp < time.time() - _CLOCKS_DIFFER:
        raise _failed("its token is over")
    verified = claims.email_verified is True or claims.email_verified == "true"
    return claims.email if verified else ""


def _invited(studio: Studio, email: str) -> Person | None:
    """The person invited by an address and not excluded."""
    if not email:
        return None
    with studio.store.reading() as tx:
        people = [person for person in tx.people(studio.id) if (person.email or "").casefold() == email.casefold()]
    return next((person for person in people if person.revoked_at is None), None)
