"""Backup, verification and restoring of a project.

There are two kinds of files, by file name. `*.sqlite` is a copy of an SQLite store, made while people work (with
SQLite's online backup). All other files are portable: JSON lines with every row of every table, for both databases;
`.gz` compresses them. Both are written to a temporary file and moved into place when complete, and verified before a
restore.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
import sqlite3
import zlib
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING, Any, cast

from sqlalchemy import Connection, Table, select, text

from veriglot.studio import tables
from veriglot.studio.store import Store, fill_search, open_store
from veriglot.studio.tables import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Query = Callable[[str], Iterable[Any]]

__all__ = ["backup", "restore"]

_FORMAT = "veriglot-studio-backup"
_VERSION = 1
_KEPT = tables.TABLES.values()  # without sessions: browsers sign in again
_SEAL = "veriglot_backup"  # the table of a copy with its digest
_AT_ONCE = 500

Row = tuple[str, list[Any]]


@dataclass(frozen=True)
class Backup:
    """The content of a backup.

    Attributes:
        path: the file.
        rows: number of rows of each table.
        digest: SHA-256 of all rows; equal for equal contents, for each database and kind of file.
    """

    path: Path
    rows: dict[str, int]
    digest: str


def backup(store: Store, path: Path) -> Backup:
    """Write a backup, and verify it by reading it.

    Raises:
        StoreError: the file exists, or `*.sqlite` is requested for a store on another database.
    """
    if path.exists():
        raise StoreError(f"{path} exists already.", "Name another file; backups are never overwritten.")
    with TemporaryDirectory(dir=path.parent, prefix=".backup-") as folder:
        new = Path(folder) / path.name
        if _is_copy(path):
            _copy(store, new)
        else:
            _dump(store, new)
        contents = _verified(new)
        new.chmod(0o600)  # it contains names and hashes of keys
        os.link(new, path)
    return Backup(path, *contents)


def verify(path: Path) -> Backup:
    """Read a whole backup and compare it with its digest."""
    if not path.is_file():
        raise StoreError(f"There is no file {path}.")
    return Backup(path, *_verified(path))


def restore(path: Path, store: Store) -> Backup:
    """Restore a backup into an empty store, and compare the digests.

    Raises:
        StoreError: the backup is damaged, or the store is not empty; then nothing changes.
    """
    source_backup = verify(path)
    if not _is_copy(path):
        return _fill(store, _lines(path), source_backup)
    with TemporaryDirectory() as folder:  # an old copy is migrated there, so that the backup itself does not change
        shutil.copyfile(path, Path(folder) / "copy.sqlite")
        source = open_store(Path(folder) / "copy.sqlite", create=False)
        try:
            now = Backup(path, source_backup.rows, digest(source))
            with source.reading() as tx:
                return _fill(store, _rows(_queried(tx.connection)), now)
        finally:
            source.close()


def digest(store: Store) -> str:
    """SHA-256 of all rows of a store, without sessions."""
    with store.reading() as tx:
        return _digest(_rows(_queried(tx.connection)))[1]


def _is_copy(path: Path) -> bool:
    return path.suffix in {".sqlite", ".db"}


def _copy(store: Store, path: Path) -> None:
    if not store.is_sqlite:
        raise StoreError("Only a store on SQLite can be copied as one.", "Name the backup *.jsonl.gz instead.")
    with closing(sqlite3.connect(str(store.engine.url.database))) as source, closing(sqlite3.connect(path)) as target:
        source.backup(target, pages=256, sleep=0.005)
        target.execute("PRAGMA journal_mode = DELETE")  # a single file, without journals
        target.execute("DELETE FROM sessions")
        target.execute(f"DROP TABLE IF EXISTS {_SEAL}")
        target.execute(f"CREATE TABLE {_SEAL} (said TEXT NOT NULL)")
        rows, whole = _digest(_rows(target.execute))
        seal = f"INSERT INTO {_SEAL} VALUES (?)"  # noqa: S608  # a name of ours
        target.execute(seal, (json.dumps({"rows": rows, "sha256": whole}),))
        target.commit()


def _dump(store: Store, path: Path) -> None:
    with store.reading() as tx, _opened(path, "wb") as file:
        file.write(_line({"format": _FORMAT, "version": _VERSION, "revision": tables.VERSION}))
        rows, whole = _digest(_write_through(_rows(_queried(tx.connection)), file))
        file.write(_line({"rows": rows, "sha256": whole}))


def _write_through(rows: Iterator[Row], file: IO[bytes]) -> Iterator[Row]:
    for row in rows:
        file.write(_line(row))
        yield row


def _verified(path: Path) -> tuple[dict[str, int], str]:
    try:
        contents, seal = _read_copy(path) if _is_copy(path) else _read_lines(path)
    except (OSError, EOFError, zlib.error, sqlite3.DatabaseError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{path} is no backup, or damaged: {error}.", "Use another backup.") from error
    if {"rows": contents[0], "sha256": contents[1]} != seal:
        raise StoreError(f"{path} does not hold what its digest says: it is damaged.", "Use another backup.")
    return contents


def _read_copy(path: Path) -> tuple[tuple[dict[str, int], str], Any]:
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as copy:
        state = copy.execute("PRAGMA integrity_check").fetchone()[0]
        if state != "ok":
            raise ValueError(state)
        seal = json.loads(copy.execute(f"SELECT said FROM {_SEAL}").fetchone()[0])  # noqa: S608  # a name of ours
        return _digest(_rows(copy.execute)), seal


def _read_lines(path: Path) -> tuple[tuple[dict[str, int], str], Any]:
    seal: dict[str, Any] = {}
    contents = _digest(_lines(path, seal))
    return contents, seal


def _lines(path: Path, tail: dict[str, Any] | None = None) -> Iterator[Row]:
    """The rows of a portable backup; the fields of its last line are added to `tail`."""
    with _opened(path, "rb") as file:
        head = json.loads(file.readline())
        if head["format"] != _FORMAT or head["version"] != _VERSION:
            raise ValueError("it has another format")
        if head["revision"] != tables.VERSION:
            raise ValueError(
                f"it was made at step {head['revision']} of the store, and this version is at {tables.VERSION}"
            )
        for line in file:
            data = json.loads(line)
            if isinstance(data, dict):
                if tail is not None:
                    tail |= data
                return
            yield data[0], data[1]
    raise ValueError("it was cut off")


def _queried(connection: Connection) -> Query:
    return lambda statement: connection.exec_driver_sql(statement, execution_options={"yield_per": _AT_ONCE})


def _rows(query: Query) -> Iterator[Row]:
    """Each row as table name and values as in the database, in a fixed order."""
    for table in _KEPT:  # copies of earlier versions have fewer columns, in the same order
        for row in query(f"SELECT * FROM {table.name} ORDER BY id"):  # noqa: S608  # a name of ours
            yield table.name, list(row)


def _digest(rows: Iterable[Row]) -> tuple[dict[str, int], str]:
    whole, counts = hashlib.sha256(), dict.fromkeys((table.name for table in _KEPT), 0)
    for row in rows:
        whole.update(_line(row))
        counts[row[0]] += 1
    return counts, whole.hexdigest()


def _fill(store: Store, rows: Iterator[Row], expected: Backup) -> Backup:
    with store.writing(lock="restore") as tx:
        for table in _KEPT:
            if tx.count(select(table.c.id)):
                raise StoreError(f"The store {store} is not empty.", "Restore into a new database.")
        widths = dict.fromkeys(tables.TABLES, 0)
        for name, group in groupby(rows, key=itemgetter(0)):
            widths[name] = _insert(tx.connection, tables.TABLES[name], (values for _, values in group))
        if not store.is_sqlite:
            for table in _KEPT:
                last = f"(SELECT max(id) FROM {table.name})"  # noqa: S608
                sequence = f"pg_get_serial_sequence('{table.name}', 'id')"
                tx.connection.execute(text(f"SELECT setval({sequence}, coalesce({last}, 1), {last} IS NOT NULL)"))
        if _digest((name, row[: widths[name]]) for name, row in _rows(_queried(tx.connection)))[1] != expected.digest:
            raise StoreError("What was restored differs from the backup; nothing was kept.", "Report it, please.")
        fill_search(tx.connection)
    return expected


def _insert(connection: Connection, table: Table, rows: Iterator[list[Any]]) -> int:
    """Insert rows of equal length and return that length; columns that the backup's version lacked get defaults."""
    width = 0
    while chunk := list(islice(rows, _AT_ONCE)):
        width = len(chunk[0])
        names = [column.name for column in table.c][:width]
        if len(names) < width:
            raise StoreError("The backup was made by a newer version of Veriglot.", "Update Veriglot.")
        marks = ", ".join(f":{name}" for name in names)
        into = f"{table.name} ({', '.join(names)})"
        statement = text(f"INSERT INTO {into} VALUES ({marks})")  # noqa: S608  # names of ours
        connection.execute(statement, [dict(zip(names, row, strict=True)) for row in chunk])
    return width


def _line(data: Any) -> bytes:
    return json.dumps(data, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"


def _opened(path: Path, mode: str) -> IO[bytes]:
    return cast("IO[bytes]", gzip.open(path, mode) if path.suffix == ".gz" else path.open(mode))
