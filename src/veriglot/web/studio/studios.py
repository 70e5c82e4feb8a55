"""The projects that one server serves, each with its store, its row and its secret."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from itsdangerous import BadSignature, Signer

from veriglot.annotate.items import enter
from veriglot.annotate.people import InvitationError, read_slug, secret_of
from veriglot.annotate.store import open_store
from veriglot.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from veriglot.annotate.project import Project
    from veriglot.annotate.store import Store

__all__ = ["Studio", "Studios"]


@dataclass(frozen=True)
class Studio:
    """A project that is served.

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
        self._studios[project.slug] = Studio(project, store, enter(store, project).id, secret_of(project))

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
