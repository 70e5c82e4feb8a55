"""The first tables. A step is never edited once a version with it was released; another follows it."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_MOMENT = sa.String(27)


def _required(name: str, type_: Any, *more: Any) -> sa.Column[Any]:
    return sa.Column(name, type_, *more, nullable=False)


def upgrade() -> None:
    """Make the tables, and the triggers that keep events from being changed."""
    _projects()
    _people()
    _work()
    _events()
    _only_added()


def _projects() -> None:
    op.create_table(
        "projects",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("slug", sa.String(64), nullable=False, unique=True),
        _required("name", sa.Text),
        _required("task", sa.String(16)),
        _required("taxonomy", sa.String(64)),
        _required("created_at", _MOMENT),
    )
    op.create_table(
        "batches",
        sa.Column("id", sa.Integer, primary_key=True),
        _required("project_id", sa.Integer, sa.ForeignKey("projects.id")),
        _required("number", sa.Integer),
        sa.Column("language", sa.String(64)),
        _required("state", sa.String(16)),
        _required("round", sa.Integer),
        sa.Column("figures", sa.Text),
        sa.UniqueConstraint("project_id", "number", name="batch_number"),
    )
    op.create_table(
        "items",
        sa.Column("id", sa.Integer, primary_key=True),
        _required("project_id", sa.Integer, sa.ForeignKey("projects.id")),
        _required("key", sa.Text),
        _required("position", sa.Integer),
        sa.Column("language", sa.String(64)),
        _required("role", sa.String(16)),
        sa.Column("batch_id", sa.Integer, sa.ForeignKey("batches.id")),
        _required("words", sa.Integer),
        _required("sample", sa.Text),
        sa.Column("gold", sa.Text),
        sa.Column("silver", sa.Text),
        sa.UniqueConstraint("project_id", "key", name="item_key"),
    )
    op.create_index("items_by_role", "items", ["project_id", "role", "language", "position"])


def _people() -> None:
    op.create_table(
        "people",
        sa.Column("id", sa.Integer, primary_key=True),
        _required("project_id", sa.Integer, sa.ForeignKey("projects.id")),
        sa.Column("public_id", sa.String(32), nullable=False, unique=True),
        _required("role", sa.String(16)),
        sa.Column("name", sa.Text),
        sa.Column("language", sa.String(64)),
        sa.Column("works_in", sa.Text),
        sa.Column("note", sa.Text),
        sa.Column("key_hash", sa.String(64), nullable=False, unique=True),
        _required("key_expires_at", _MOMENT),
        _required("invited_at", _MOMENT),
        sa.Column("joined_at", _MOMENT),
        sa.Column("consented_at", _MOMENT),
        sa.Column("consent", sa.Text),
        sa.Column("revoked_at", _MOMENT),
        _required("exam_attempts", sa.Integer),
        sa.Column("exam_passed_at", _MOMENT),
        sa.Column("out_at", _MOMENT),
        sa.Column("exam_figures", sa.Text),
    )
    op.create_index("people_of_project", "people", ["project_id"])
    op.create_table(
        "sessions",
        sa.Column("token_hash", sa.String(64), primary_key=True),
        _required("person_id", sa.Integer, sa.ForeignKey("people.id")),
        _required("created_at", _MOMENT),
        _required("seen_at", _MOMENT),
        _required("expires_at", _MOMENT),
    )


def _work() -> None:
    op.create_table(
        "assignments",
        sa.Column("id", sa.Integer, primary_key=True),
        _required("project_id", sa.Integer, sa.ForeignKey("projects.id")),
        _required("item_id", sa.Integer, sa.ForeignKey("items.id")),
        _required("person_id", sa.Integer, sa.ForeignKey("people.id")),
        _required("purpose", sa.String(16)),
        _required("round", sa.Integer),
        sa.Column("subject_id", sa.Integer, sa.ForeignKey("assignments.id")),
        _required("state", sa.String(16)),
        _required("version", sa.Integer),
        _required("layer", sa.Text),
        sa.Column("suggestions", sa.Text),
        sa.Column("message", sa.Text),
        _required("seconds", sa.Float),
        _required("created_at", _MOMENT),
        sa.Column("opened_at", _MOMENT),
        _required("changed_at", _MOMENT),
        sa.Column("submitted_at", _MOMENT),
    )
    op.create_index("assignments_of_person", "assignments", ["person_id", "state"])
    op.create_index("assignments_of_item", "assignments", ["item_id", "purpose"])
    op.create_index("assignments_of_project", "assignments", ["project_id", "purpose", "state"])
    op.create_index("assignments_of_subject", "assignments", ["subject_id"])
    op.create_index(
        "assigned_once",
        "assignments",
        ["item_id", "person_id", "purpose", "round", sa.text("coalesce(subject_id, 0)")],
        unique=True,
    )


def _events() -> None:
    op.create_table(
        "events",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("event_id", sa.String(64), nullable=False, unique=True),
        _required("project_id", sa.Integer, sa.ForeignKey("projects.id")),
        sa.Column("assignment_id", sa.Integer, sa.ForeignKey("assignments.id")),
        sa.Column("item_id", sa.Integer, sa.ForeignKey("items.id")),
        sa.Column("person_id", sa.Integer, sa.ForeignKey("people.id")),
        _required("kind", sa.String(32)),
        sa.Column("base_version", sa.Integer),
        sa.Column("version", sa.Integer),
        sa.Column("state", sa.String(16)),
        sa.Column("layer", sa.Text),
        sa.Column("payload", sa.Text),
        sa.Column("digest", sa.String(64)),
        _required("seconds", sa.Float),
        sa.Column("client_at", _MOMENT),
        _required("at", _MOMENT),
    )
    op.create_index("events_of_assignment", "events", ["assignment_id", "id"])
    op.create_index("events_of_item", "events", ["item_id", "id"])
    op.create_index("events_of_project", "events", ["project_id", "id"])


def _only_added() -> None:
    if op.get_bind().dialect.name == "sqlite":
        for word in ("update", "delete"):
            op.execute(
                f"CREATE TRIGGER events_no_{word} BEFORE {word.upper()} ON events"
                " BEGIN SELECT RAISE(ABORT, 'events are only ever added'); END"
            )
        return
    op.execute(
        "CREATE FUNCTION veriglot_events_only_added() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION 'events are only ever added'; END $$"
    )
    op.execute(
        "CREATE TRIGGER events_only_added BEFORE UPDATE OR DELETE OR TRUNCATE ON events"
        " FOR EACH STATEMENT EXECUTE FUNCTION veriglot_events_only_added()"
    )
