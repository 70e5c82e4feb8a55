"""What an operator may set. Nothing about proxies, hosts or schemes is believed that is not set here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from veriglot.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["RATES", "Settings"]

RATES: Mapping[str, str] = {
    "join": "240/minute",  # by address: tries of links; a whole team may sit behind one
    "stranger": "120/minute",  # by address: calls without a session that holds
    "call": "20/second",  # by session
    "write": "600/minute",  # by session
    "heavy": "30/minute",  # by session: figures and exports
}
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})


@dataclass(frozen=True)
class Settings:
    """Settings of a server.

    Attributes:
        base_url: where people reach the studio, such as `https://studio.example.org` or one with a path below a host;
            None where they reach it as it listens. Links, cookies and what counts as our own origin follow it.
        hosts: further names that requests may come to; empty allows loopback's names, or any where `any_host` is set.
        any_host: take requests to any name: for a server that listens to the network without a `base_url`.
        trusted_proxies: addresses or networks whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed; empty for
            none.
        max_body: the most bytes of a request.
        body_seconds: how long a request may take to arrive.
        rates: how often what may be called, in the notation of `limits`; see `RATES`.
        open_api: whether everybody may read `/api/openapi.json`, and not only leads.
    """

    base_url: str | None = None
    hosts: tuple[str, ...] = ()
    any_host: bool = False
    trusted_proxies: tuple[str, ...] = ()
    max_body: int = 2_000_000
    body_seconds: float = 30.0
    rates: Mapping[str, str] = field(default_factory=lambda: dict(RATES))
    open_api: bool = False

    def __post_init__(self) -> None:
        if self.base_url is None:
            return
        try:
            parts = urlsplit(self.base_url)
            sound = parts.scheme in {"http", "https"} and parts.hostname and not parts.query and not parts.fragment
            sound = bool(sound) and parts.username is None and (parts.port is None or parts.port > 0)
        except ValueError:
            sound = False
        if not sound:
            raise UsageError(
                f"{self.base_url!r} is no address of a studio.", remedy="Write it like https://studio.example.org."
            )

    @property
    def origin(self) -> str | None:
        """Scheme, host and port of `base_url`."""
        if self.base_url is None:
            return None
        parts = urlsplit(self.base_url)
        return f"{parts.scheme}://{parts.netloc}".lower()

    @property
    def path(self) -> str:
        """What stands before every path: empty, or `/below/a/host`."""
        return "" if self.base_url is None else urlsplit(self.base_url).path.rstrip("/")

    @property
    def known_hosts(self) -> frozenset[str] | None:
        """Names that requests may come to, without ports; None for any."""
        if self.any_host:
            return None
        named = set(self.hosts)
        if self.base_url is not None:
            named.add(_host_of(urlsplit(self.base_url).netloc))
        return frozenset(name.lower() for name in named) | _LOOPBACK


def _host_of(netloc: str) -> str:
    """A host without its port; an IPv6 address keeps its brackets."""
    return netloc[: netloc.index("]") + 1] if netloc.startswith("[") else netloc.partition(":")[0]
