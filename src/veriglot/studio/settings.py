"""What an operator may set, and the projects that one server serves.

Nothing about proxies, hosts or schemes is believed that is not set here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from itsdangerous import BadSignature, Signer

from veriglot.errors import UsageError
from veriglot.studio.items import register_project
from veriglot.studio.people import InvitationError, read_slug, secret_of
from veriglot.studio.store import open_store

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from veriglot.studio.project import Project
    from veriglot.studio.store import Store

__all__ = ["Settings", "Studio", "Studios"]


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


@dataclass(frozen=True, eq=False)
class Studio:
    """A project that is served; equal to itself alone, so that caches can go by it.

    Attributes:
        project: its file, read.
        store: where its work is kept; projects may share one.
        id: of its row in the store.
        secret: that its links and cookies are signed with.
    """

    project: Project
    store: Store
    id: int
    secret: bytes

    @property
    def slug(self) -> str:
        """The project's slug."""
        return self.project.slug

    def sign(self, purpose: str, text: str) -> str:
        """A signature of a text for one purpose."""
        return self._signer(purpose).get_signature(text).decode()

    def signed(self, purpose: str, text: str, signature: str) -> bool:
        """Whether a signature was made by `sign` for this purpose."""
        try:
            return self._signer(purpose).verify_signature(text, signature)
        except (BadSignature, ValueError):
            return False

    def _signer(self, purpose: str) -> Signer:
        return Signer(self.secret, salt=f"veriglot.studio.{purpose}", key_derivation="hmac")


class Studios:
    """All projects of a server, by slug."""

    def __init__(self, projects: Sequence[Project], database: str | None = None) -> None:
        """Open the stores.

        Args:
            projects: at least one; no two with one slug.
            database: in place of what the project files name.

        Raises:
            UsageError: two projects have one slug, or there is none.
            StoreError: a database cannot be opened, or a secret cannot be read or made.
        """
        self._stores: dict[str, Store] = {}
        self._studios: dict[str, Studio] = {}
        if not projects:
            raise UsageError("There is no project to serve.")
        try:
            for project in projects:
                self._add(project, database or project.database)
        except BaseException:
            self.close()
            raise

    def _add(self, project: Project, database: str) -> None:
        if project.slug in self._studios:
            raise UsageError(f"Two projects have the slug {project.slug!r}.", remedy="Give each a slug of its own.")
        store = self._stores.get(database)
        if store is None:
            store = self._stores[database] = open_store(database)
        self._studios[project.slug] = Studio(project, store, register_project(store, project).id, secret_of(project))

    def __iter__(self) -> Iterator[Studio]:
        return iter(self._studios.values())

    def get(self, slug: str) -> Studio | None:
        """The project of a slug."""
        return self._studios.get(slug)

    def of_token(self, token: str) -> Studio:
        """The project that an invitation leads to.

        Raises:
            InvitationError: none; it was signed by nobody here.
        """
        for studio in self:
            try:
                slug = read_slug(studio.secret, token)
            except InvitationError:
                continue
            if slug == studio.slug:  # several projects may share one secret from the environment
                return studio
        raise InvitationError("forged")

    def healthy(self) -> bool:
        """Whether every store answers."""
        for store in self._stores.values():
            with store.reading() as tx:
                tx.projects()
        return True

    def close(self) -> None:
        """Let go of the stores."""
        for store in self._stores.values():
            store.close()
