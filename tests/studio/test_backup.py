"""Backups hold everything, are verified, and go from either database into either."""

from __future__ import annotations

import gzip
import sqlite3
import stat
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import select
from sqlalchemy.exc import DBAPIError
from studio_rows import event, marked, person, small

from veriglot.studio.assignment import append
from veriglot.studio.backup import backup, digest, restore, verify
from veriglot.studio.store import Store, open_store
from veriglot.studio.tables import TABLES, Conflict, StoreError, now

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NAMES = ["b.jsonl", "b.jsonl.gz", "b.sqlite"]


@pytest.fixture
def other(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], str]:
    """The address of a second empty database of a kind."""

    def make(kind: str) -> str:
        return str(tmp_path / "other.sqlite") if kind == "sqlite" else request.getfixturevalue("cluster").empty("other")

    return make


def filled(store: Store) -> None:
    s = small(store, items=700)
    append(store, s.assignment.id, s.person.id, event("submit", layer=marked(comment="\0 👩‍👩‍👧"), seconds=0.1 + 0.2))
    with pytest.raises(Conflict):
        append(store, s.assignment.id, s.person.id, event())
    with store.writing() as tx:
        tx.add_session("hash", s.person.id, now())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_everything_comes_back(store: Store, other: Callable[[str], str], tmp_path: Path, name: str, kind: str) -> None:
    filled(store)
    path = tmp_path / name
    if name.endswith(".sqlite") and not store.is_sqlite:
        with pytest.raises(StoreError, match=r"jsonl\.gz"):
            backup(store, path)
        assert not path.exists()
        return
    made = backup(store, path)
    assert made.digest == digest(store) == verify(path).digest
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert made.rows["items"] == 700
    target = open_store(other(kind))
    assert restore(path, target).digest == made.digest == digest(target)
    with store.reading() as a, target.reading() as b:
        project = a.project("small").id
        assert a.assignments(project) == b.assignments(project)
        assert list(a.events(project)) == list(b.events(project))
    with target.writing() as tx:  # numbers go on where they were
        person(tx, tx.project("small").id)
    with pytest.raises(StoreError, match="not empty"):
        restore(path, target)
    with pytest.raises(DBAPIError, match="only ever added"), target.writing() as tx:
        tx.connection.exec_driver_sql("DELETE FROM events")
    target.close()
    with pytest.raises(StoreError, match="exists already"):
        backup(store, path)
    assert [left.name for left in tmp_path.iterdir() if left.name.startswith(".backup")] == []


@pytest.mark.parametrize("name", NAMES)
def test_a_damaged_backup_is_refused_and_restores_nothing(tmp_path: Path, name: str) -> None:
    store = open_store(tmp_path / "s.sqlite")
    filled(store)
    backup(store, tmp_path / name)
    whole = (tmp_path / name).read_bytes()
    plain = gzip.decompress(whole) if name.endswith(".gz") else whole
    place = plain.index(b"item-650")
    damaged = {
        "changed": plain[:place] + b"item-651" + plain[place + 8 :],
        "cut": plain[: len(plain) // 2],
        "empty": b"",
        "else": b'{"format": "other"}\n',
        "list": b"[]\n",
    }
    target = open_store(tmp_path / "target.sqlite")
    for what, data in damaged.items():
        path = tmp_path / f"{what}-{name}"
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        with pytest.raises(StoreError):
            restore(path, target)
        with target.reading() as tx:
            assert tx.count(select(TABLES["projects"])) == 0
    (tmp_path / f"half-{name}").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(StoreError):
        verify(tmp_path / f"half-{name}")
    target.close()
    store.close()


def test_people_work_on_while_it_is_made(store: Store, tmp_path: Path) -> None:
    s = small(store, items=300)

    def work() -> int:
        for version in range(30):
            append(store, s.assignment.id, s.person.id, event(base=version, layer=marked(comment=str(version))))
        return 30

    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(work)
        names = [f"{n}.jsonl" for n in range(3)] + ([f"{n}.sqlite" for n in range(3)] if store.is_sqlite else [])
        for name in names:
            made = backup(store, tmp_path / name)
            assert verify(tmp_path / name) == made
            assert made.rows["events"] >= 304
        assert working.result() == 30
    with store.reading() as tx:
        assert tx.assignment(s.assignment.id).version == 30


def test_a_copy_for_sqlite_is_one_file_without_sessions(tmp_path: Path) -> None:
    store = open_store(tmp_path / "s.sqlite")
    filled(store)
    backup(store, tmp_path / "copy.sqlite")
    store.close()
    connection = sqlite3.connect(tmp_path / "copy.sqlite")
    assert connection.execute("SELECT count(*) FROM sessions").fetchone() == (0,)
    connection.close()
    assert not list(tmp_path.glob("copy.sqlite-*"))
