"""Sessions for Wikimedia's servers as their operators ask: who we are, one request after the other, not too fast.

https://foundation.wikimedia.org/wiki/Policy:User-Agent_policy, https://www.mediawiki.org/wiki/API:Etiquette.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from veriglot import __version__
from veriglot.errors import UsageError
from veriglot.sources.editions import edition_of, wiki_url

if TYPE_CHECKING:
    from veriglot.http import Session

__all__ = ["page_views_session", "user_agent", "wikidata_session", "wikipedia_session"]


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
    return _session(server or wiki_url(edition_of(language)), contact, rate, retries=6)


def wikidata_session(*, contact: str | None, server: str | None = None, rate: float | None = 1.0) -> Session:
    """Wikidata's query server, without retries, which `Sparql` makes; otherwise as for `wikipedia_session`."""
    return _session(server or "https://query.wikidata.org", contact, rate, retries=0, timeout=90.0)


def page_views_session(*, contact: str | None, server: str | None = None, rate: float | None = 10.0) -> Session:
    """The server of page views; arguments and errors as for `wikipedia_session`."""
    return _session(server or "https://wikimedia.org/api/rest_v1", contact, rate, retries=6)


def _session(server: str, contact: str | None, rate: float | None, *, retries: int, timeout: float = 60.0) -> Session:
    from veriglot.http import Session

    host = urlsplit(server).hostname or ""
    if contact is None and host.endswith(("wikipedia.org", "wikimedia.org", "wikidata.org")):
        raise UsageError(
            "Wikimedia's servers refuse programs that do not say whom to write to.",
            remedy="Add --contact with an e-mail or web address of yours; it is sent to them with each request.",
        )
    return Session(server, user_agent=user_agent(contact), rate=rate, retries=retries, timeout=timeout)
