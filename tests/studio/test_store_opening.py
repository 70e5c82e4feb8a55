"""Opening: it makes what the tables say, a newer database is refused, many may open at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import inspect, select, text
from studio_rows import small

from veriglot.errors import UsageError
from veriglot.studio.backup import backup, restore
from veriglot.studio.store import Store, open_store
from veriglot.studio.tables import TABLES, VERSION, StoreError, sessions, versions

if TYPE_CHECKING:
    from pathlib import Path


def test_opening_makes_the_tables_of_this_version(store: Store) -> None:
    with store.engine.connect() as connection:
        assert connection.execute(select(versions.c.version_num)).scalars().all() == [VERSION]
        made = inspect(connection)
        tables = {**TABLES, "sessions": sessions}
        assert set(made.get_table_names()) == {*tables, "alembic_version"}
        for name, table in tables.items():
            columns = [(column["name"], column["nullable"]) for column in made.get_columns(name)]
            assert columns == [(column.name, column.nullable) for column in table.c]  # backups go by their order too
            assert made.get_pk_constraint(name)["constrained_columns"] == [column.name for column in table.primary_key]


def test_nobody_has_an_item_twice_for_one_purpose(store: Store) -> None:
    from sqlalchemy.exc import IntegrityError

    from veriglot.studio.tables import Purpose

    s = small(store)
    with pytest.raises(IntegrityError), store.writing() as tx:
        tx.assign(tx.item(s.assignment.item_id), s.person.id, Purpose.ANNOTATE)
    with store.writing() as tx:
        tx.assign(tx.item(s.assignment.item_id), s.person.id, Purpose.ANNOTATE, round=1)


def test_opening_again_keeps_everything(store: Store, database: str) -> None:
    s = small(store)
    again = open_store(database)
    with again.reading() as tx:
        assert tx.assignment(s.assignment.id) == s.assignment
    again.close()


def _as_before(connection) -> None:
    """The tables as the first version made them."""
    for name in ("search", "priority", "wanted", "prediction"):
        connection.execute(text(f"ALTER TABLE items DROP COLUMN {name}"))


def test_a_database_of_an_earlier_version_gets_the_columns_that_it_lacks(store: Store, database: str) -> None:
    small(store, items=2)
    with store.reading() as tx:
        made = tx.items(1)
    with store.engine.begin() as connection:
        _as_before(connection)
    again = open_store(database)
    test_opening_makes_the_tables_of_this_version(again)
    with again.reading() as tx:
        assert tx.items(1) == made
        assert [(item.priority, item.wanted) for item in tx.items(1)] == [(0.0, None)] * 2
        texts = tx.connection.execute(select(TABLES["items"].c.search)).scalars().all()
    assert [line.partition("\n")[0] for line in texts] == ["item-0", "item-1"]
    assert all("ada war in paris" in line for line in texts)  # without regard to case
    again.close()


def test_a_backup_of_an_earlier_version_is_restored(store: Store, tmp_path: Path) -> None:
    small(store, items=2)
    with store.engine.begin() as connection:
        _as_before(connection)
    names = ["old.jsonl.gz", *(["old.sqlite"] if store.is_sqlite else [])]
    for name in names:
        backup(store, tmp_path / name)
        target = open_store(tmp_path / f"{name}.target.sqlite")
        restore(tmp_path / name, target)
        with target.reading() as tx:
            assert [(item.key, item.priority) for item in tx.items(1)] == [("item-0", 0.0), ("item-1", 0.0)]
            assert "" not in tx.connection.execute(select(TABLES["items"].c.search)).scalars().all()
        target.close()


def test_a_newer_database_is_refused_and_left_alone(store: Store, database: str) -> None:
    with store.writing() as tx:
        tx.connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(StoreError, match="newer version of Veriglot"):
        open_store(database)
    with store.reading() as tx:
        assert tx.connection.execute(text("SELECT version_num FROM alembic_version")).scalar() == "9999"


def test_somebody_elses_tables_are_refused(store: Store, database: str) -> None:
    with store.writing() as tx:
        tx.connection.execute(text("DROP TABLE alembic_version"))
    with pytest.raises(StoreError, match="not Veriglot's"):
        open_store(database)


def test_many_may_make_one_database_at_once(database: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        stores = list(pool.map(lambda _: open_store(database), range(4)))
    for one in stores:
        with one.reading() as tx:
            assert tx.count(select(TABLES["projects"])) == 0
        one.close()


def test_a_block_that_raises_leaves_nothing(store: Store) -> None:
    with pytest.raises(ZeroDivisionError), store.writing() as tx:
        1 / tx.add_project(slug="x", name="X", task="spans", taxonomy="fava") / 0
    with store.reading() as tx:
        assert tx.count(select(TABLES["projects"])) == 0


def test_reading_sees_one_moment(store: Store) -> None:
    s = small(store)
    with store.reading() as tx:
        before = tx.people(s.project_id)
        with store.writing() as other:
            other.update_person(s.person.id, "renamed", name="Ada")
        assert tx.people(s.project_id) == before


def test_what_is_no_database_is_refused_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "text.sqlite").write_text("this is no database, only text of some length" * 99)
    for wrong in (tmp_path / "text.sqlite", tmp_path, tmp_path / "no" / "folder.sqlite"):
        with pytest.raises(StoreError):
            open_store(wrong)
    with pytest.raises(StoreError, match="There is no database"):
        open_store(tmp_path / "absent.sqlite", create=False)
    for wrong_url in ("mysql://host/name", "sqlite://"):
        with pytest.raises(UsageError):
            open_store(wrong_url)


def test_a_password_is_never_shown(tmp_path: Path) -> None:
    pytest.importorskip("psycopg", reason="needs the extra postgres: pip install 'veriglot[postgres]'")
    with pytest.raises(StoreError) as refused:
        open_store(f"postgresql://me:sesame@/name?host={tmp_path}")
    assert "sesame" not in str(refused.value)


def test_texts_of_any_kind_survive(store: Store) -> None:
    text_ = "\0 \ud83d null, half, 👩‍👩‍👧, عربي, \u202e"
    with store.writing() as tx:
        project_id = tx.add_project(slug="x", name="X", task="spans", taxonomy="fava")
        tx.record("note", project_id, payload={"text": text_})
    with store.reading() as tx:
        (kept,) = tx.events(project_id, kind=["note"])
    assert kept.payload == {"text": text_}
