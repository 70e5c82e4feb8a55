"""The first tables. A step is never edited once a version with it was released; another follows it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_MOMENT = sa.String(27)


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
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("task", sa.String(16), nullable=False),
        sa.Column("taxonomy", sa.String(64), nullable=False),
        sa.Column("created_at", _MOMENT, nullable=False),
    )
    op.create_table(
        "batches",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("project_id", sa.Integer, sa.ForeignKey("projects.id"), nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("language", sa.String(64)),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("round", sa.Integer, nullable=False),
        sa.Column("figures", sa.Text),
        sa.UniqueConstraint("project_id", "number", name="batch_number"),
    )
    op.create_table(
        "items",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("project_id", sa.Integer, sa.ForeignKey("projects.id"), nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("language", sa.String(64)),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("batch_id", sa.Integer, sa.ForeignKey("batches.id")),
        sa.Column("words", sa.Integer, nullable=False),
        sa.Column("sample", sa.Text, nullable=False),
        sa.Column("gold", sa.Text),
        sa.Column("silver", sa.Text),
        sa.UniqueConstraint("project_id", "key", name="item_key"),
    )
    op.create_index("items_by_role", "items", ["project_id", "role", "language", "position"])


def _people() -> None:
    op.create_table(
        "people",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("project_id", sa.Integer, sa.ForeignKey("projects.id"), nullable=False),
        sa.Column("public_id", sa.String(32), nullable=False, unique=True),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("name", sa.Text),
        sa.Column("language", sa.String(64)),
        sa.Column("works_in", sa.Text),
        sa.Column("note", sa.Text),
        sa.Column("key_hash", sa.String(64), nullable=False, unique=True),
        sa.Column("key_expires_at", _MOMENT, nullable=False),
        sa.Column("invited_at", _MOMENT, nullable=False),
        sa.Column("joined_at", _MOMENT),
        sa.Column("consented_at", _MOMENT),
        sa.Column("consent", sa.Text),
        sa.Column("revoked_at", _MOMENT),
        sa.Column("exam_attempts", sa.Integer, nullable=False),
        sa.Column("exam_passed_at", _MOMENT),
        sa.Column("out_at", _MOMENT),
        sa.Column("exam_figures", sa.Text),
    )
    op.create_index("people_of_project", "people", ["project_id"])
    op.create_table(
        "sessions",
        sa.Column("token_hash", sa.String(64), primary_key=True),
        sa.Column("person_id", sa.Integer, sa.ForeignKey("people.id"), nullable=False),
        sa.Column("created_at", _MOMENT, nullable=False),
        sa.Column("seen_at", _MOMENT, nullable=False),
        sa.Column("expires_at", _MOMENT, nullable=False),
    )


def _work() -> None:
    op.create_table(
        "assignments",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("project_id", sa.Integer, sa.ForeignKey("projects.id"), nullable=False),
        sa.Column("item_id", sa.Integer, sa.ForeignKey("items.id"), nullable=False),
        sa.Column("person_id", sa.Integer, sa.ForeignKey("people.id"), nullable=False),
        sa.Column("purpose", sa.String(16), nullable=False),
        sa.Column("round", sa.Integer, nullable=False),
        sa.Column("subject_id", sa.Integer, sa.ForeignKey("assignments.id")),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("layer", sa.Text, nullable=False),
        sa.Column("suggestions", sa.Text),
        sa.Column("message", sa.Text),
        sa.Column("seconds", sa.Float, nullable=False),
        sa.Column("created_at", _MOMENT, nullable=False),
        sa.Column("opened_at", _MOMENT),
        sa.Column("changed_at", _MOMENT, nullable=False),
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
        sa.Column("project_id", sa.Integer, sa.ForeignKey("projects.id"), nullable=False),
        sa.Column("assignment_id", sa.Integer, sa.ForeignKey("assignments.id")),
        sa.Column("item_id", sa.Integer, sa.ForeignKey("items.id")),
        sa.Column("person_id", sa.Integer, sa.ForeignKey("people.id")),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("base_version", sa.Integer),
        sa.Column("version", sa.Integer),
        sa.Column("state", sa.String(16)),
        sa.Column("layer", sa.Text),
        sa.Column("payload", sa.Text),
        sa.Column("digest", sa.String(64)),
        sa.Column("seconds", sa.Float, nullable=False),
        sa.Column("client_at", _MOMENT),
        sa.Column("at", _MOMENT, nullable=False),
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
