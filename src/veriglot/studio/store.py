"""The store: SQLite or PostgreSQL behind one behaviour, and its migrations."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from zlib import crc32

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, event, inspect, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, OperationalError

from veriglot.errors import MissingExtraError, UsageError
from veriglot.studio.tables import Conflict, StoreError
from veriglot.studio.transaction import ReadTransaction, WriteTransaction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sqlalchemy import URL, Connection, Engine

    from veriglot.studio.tables import Assignment, EventResult, NewEvent

__all__ = ["Store", "newest", "open_store", "revision_of"]


# Numbered migrations, run when a store is opened. A database that a newer version has touched is refused.


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


T = TypeVar("T")

_WAIT = 60.0  # seconds that a writer of SQLite waits for another before it gives up
_TRIES = 5
_RETRYABLE = {"40001", "40P01"}  # PostgreSQL: could not serialise, deadlock


class Store:
    """A database of projects. May be used by several threads at once; processes open their own.

    Attributes:
        engine: SQLAlchemy's.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._turn = threading.Lock() if engine.dialect.name == "sqlite" else nullcontext()

    @property
    def is_sqlite(self) -> bool:
        """Whether it is a file of SQLite."""
        return self.engine.dialect.name == "sqlite"

    @property
    def file(self) -> Path | None:
        """The file of SQLite, or None."""
        return Path(str(self.engine.url.database)) if self.is_sqlite else None

    def __str__(self) -> str:
        return self.engine.url.render_as_string(hide_password=True)

    def close(self) -> None:
        """Let go of all connections."""
        self.engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[ReadTransaction]:
        """A transaction that only reads; what it sees stands still while it lasts."""
        with self._connected() as connection:
            if self.is_sqlite:
                connection = connection.execution_options(veriglot_reads=True)
            else:
                connection = connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            with connection.begin():
                yield ReadTransaction(connection)

    @contextmanager
    def writing(self, lock: str | None = None) -> Iterator[WriteTransaction]:
        """A transaction: all of it is kept when the block ends, nothing where it raises.

        Args:
            lock: a word; two transactions with the same word follow each other. SQLite has one writer at a time anyway,
                but on PostgreSQL a choice that depends on what is there (who gets which item) needs one.
        """
        # SQLite has one writer; threads of one process queue up here, for its own waiting is by sleeps that grow.
        with self._turn, self._connected() as connection, connection.begin():
            if lock is not None and not self.is_sqlite:
                key = crc32(lock.encode())
                connection.execute(text("SELECT pg_advisory_xact_lock(:area, :key)"), {"area": 1, "key": key - 2**31})
            yield WriteTransaction(connection)

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        try:
            with self.engine.connect() as connection:
                yield connection
        except OperationalError as error:
            if _retryable(error):
                raise
            raise _unreachable(self.engine.url, error) from error

    def append(
        self,
        assignment_id: int,
        person_id: int,
        new: NewEvent,
        *,
        before: Callable[[WriteTransaction, Assignment], None] | None = None,
        after: Callable[[WriteTransaction, Assignment], None] | None = None,
        lock: str | None = None,
    ) -> EventResult:
        """Add an event to an assignment, in one transaction; when this returns, it is on disk.

        An event that is known already gives its first result, and nothing is done. One that comes too late is kept as a
        `conflict`, and refused.

        Args:
            assignment_id: the assignment.
            person_id: who does it; it has to be theirs.
            new: the event. Its layer is taken as checked (`layers.check`).
            before: called in the transaction with the assignment as it was, once the event is known to be new and in
                time; what it raises undoes everything.
            after: called in the transaction with the assignment as it is now, such as for the effects of a review.
            lock: of the transaction, see `writing`.

        Raises:
            NotFound: no such assignment of this person.
            Conflict: the assignment has changed since `base_version`, or its state takes no such event.
            Refused: the person was shut out, or the id belongs to another event.
        """

        def act(tx: WriteTransaction) -> EventResult:
            return tx.append(assignment_id, person_id, new, before=before, after=after)

        appended = self.transact(act, lock=lock)
        if appended.reason is not None:
            with self.reading() as tx:
                now = tx.assignment(assignment_id)
            raise Conflict(now.version, now.state, now.layer, appended.reason)
        return appended

    def transact(self, act: Callable[[WriteTransaction], T], *, lock: str | None = None) -> T:
        """What `act` returns in a transaction; retried where the database asks (PostgreSQL: deadlock, equal ids).

        Args:
            act: what is done in the transaction.
            lock: see `writing`.
        """
        for turn in range(_TRIES):
            try:
                with self.writing(lock) as tx:
                    return act(tx)
            except (OperationalError, IntegrityError) as error:
                retry = isinstance(error, IntegrityError) or _retryable(error)
                if not retry or turn == _TRIES - 1:
                    raise
            time.sleep(0.01 * 2**turn)
        raise AssertionError


def open_store(database: str | Path, *, create: bool = True) -> Store:
    """Open a store, and bring its tables to this version.

    Args:
        database: a path of an SQLite file, `sqlite:///PATH`, or `postgresql://...`.
        create: make the file of SQLite where there is none.

    Raises:
        MissingExtraError: PostgreSQL is named, and its driver is not installed.
        StoreError: it cannot be reached, is newer than this version of Veriglot, or is no database of its own.
    """
    url = _url(str(database))
    if url.get_backend_name() == "sqlite":
        _check_file(Path(str(url.database)), create)
    try:
        engine = _engine(url)
    except ModuleNotFoundError as error:
        raise MissingExtraError("PostgreSQL", "postgres") from error
    store = Store(engine)
    try:
        for turn in range(_TRIES):  # two that make one file at once
            try:
                with store.engine.begin() as connection:
                    migrate(connection)
                break
            except OperationalError as error:
                if "locked" not in str(error) or turn == _TRIES - 1:
                    raise _unreachable(url, error) from error
                time.sleep(0.2 * 2**turn)
            except DBAPIError as error:
                raise _unreachable(url, error) from error
    except BaseException:
        store.close()
        raise
    return store


def _url(database: str) -> URL:
    if "://" not in database:
        return make_url("sqlite://").set(database=str(Path(database).expanduser().absolute()))
    try:
        url = make_url(database)
    except ArgumentError:
        raise UsageError(
            "This is no address of a database.", remedy="Name a file, or postgresql://HOST/NAME."
        ) from None
    if url.drivername in {"postgresql", "postgres"}:
        return url.set(drivername="postgresql+psycopg")
    if url.drivername == "sqlite" and url.database:
        return url.set(database=str(Path(url.database).absolute()))
    raise UsageError(
        f"There is no store on {url.drivername!r}.", remedy="Name a file of SQLite, or postgresql://HOST/NAME."
    )


def _check_file(path: Path, create: bool) -> None:
    if path.is_dir():
        raise StoreError(f"{path} is a folder, not a database.")
    if not path.exists() and not create:
        raise StoreError(f"There is no database at {path}.", remedy="Type: veriglot studio import PROJECT")
    if not path.parent.is_dir():
        raise StoreError(f"There is no folder {path.parent}.", remedy="Make it, or name another file.")


def _engine(url: URL) -> Engine:
    if url.get_backend_name() != "sqlite":
        return create_engine(url, pool_size=10, max_overflow=30, pool_pre_ping=True)
    engine = create_engine(url, pool_size=10, max_overflow=30, connect_args={"timeout": _WAIT})
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # transactions begin where we say so, not where the driver guesses
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {int(_WAIT * 1000)}")
    cursor.execute("PRAGMA journal_mode = WAL")
    cursor.execute("PRAGMA synchronous = FULL")  # what was acknowledged survives a crash of the machine
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    reads = connection.get_execution_options().get("veriglot_reads", False)
    connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")


def _retryable(error: DBAPIError) -> bool:
    return getattr(error.orig, "sqlstate", None) in _RETRYABLE


def _unreachable(url: URL, error: DBAPIError) -> StoreError:
    lines = str(error.orig).strip().splitlines()
    return StoreError(
        f"The database {url.render_as_string(hide_password=True)} cannot be used: {lines[0] if lines else error}",
        remedy="Is it running, is the name right, and may this user write to it?",
    )
