"""Numbered migrations, run when a store is opened. A database that a newer version has touched is refused."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text

from veriglot.annotate.store.errors import StoreError

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = ["migrate", "newest", "revision_of"]

_FOLDER = Path(__file__).parent / "migrations"
_ONE_AT_A_TIME = threading.Lock()  # alembic's context is one for the process
_LOCK_KEY = 0x7665_7269  # "veri", so that no two processes migrate one PostgreSQL database at once


def _config(connection: Connection | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def newest() -> str:
    """The number of the last step that this version knows."""
    head = ScriptDirectory.from_config(_config()).get_current_head()
    if head is None:
        raise StoreError("The migrations of the store are missing.", remedy="Install Veriglot again.")
    return head


def revision_of(connection: Connection) -> str | None:
    """The number of the last step that was run on a database, or None for an empty one."""
    return MigrationContext.configure(connection).get_current_revision()


def migrate(connection: Connection) -> None:
    """Bring a database to this version, in the transaction that the connection is in.

    Raises:
        StoreError: a newer version of Veriglot made it, or its tables are somebody else's.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK_KEY})
    at = revision_of(connection)
    if at == newest():
        return
    known = {script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()}
    if at is None and inspect(connection).has_table("events"):
        raise StoreError(
            "This database holds tables that are not Veriglot's.", remedy="Name an empty database, or another file."
        )
    if at is not None and at not in known:
        raise StoreError(
            f"This database was made by a newer version of Veriglot (step {at}; this version knows {newest()}).",
            remedy="Update Veriglot. Nothing was changed.",
        )
    with _ONE_AT_A_TIME:
        command.upgrade(_config(connection), "head")
