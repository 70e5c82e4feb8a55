"""The tables, as this version has them. The migrations make them; a test holds the two against each other.

Everything a person sees is a function of these. `events` is only ever added to; triggers refuse anything else.
"""

from __future__ import annotations

from sqlalchemy import Column, Float, ForeignKey, Index, Integer, MetaData, String, Table, Text, UniqueConstraint, text

from veriglot.annotate.store.columns import Json, Moment

__all__ = ["METADATA", "assignments", "batches", "events", "items", "people", "projects", "sessions"]

METADATA = MetaData()

projects = Table(
    "projects",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("slug", String(64), nullable=False, unique=True),
    Column("name", Text, nullable=False),
    Column("task", String(16), nullable=False),
    Column("taxonomy", String(64), nullable=False),
    Column("created_at", Moment, nullable=False),
)

batches = Table(
    "batches",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("project_id", ForeignKey("projects.id"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("language", String(64)),
    Column("state", String(16), nullable=False),
    Column("round", Integer, nullable=False),
    Column("figures", Json),
    UniqueConstraint("project_id", "number", name="batch_number"),
)

items = Table(
    "items",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("project_id", ForeignKey("projects.id"), nullable=False),
    Column("key", Text, nullable=False),
    Column("position", Integer, nullable=False),
    Column("language", String(64)),
    Column("role", String(16), nullable=False),
    Column("batch_id", ForeignKey("batches.id")),
    Column("words", Integer, nullable=False),
    Column("sample", Json, nullable=False),
    Column("gold", Json),
    Column("silver", Json),
    UniqueConstraint("project_id", "key", name="item_key"),
    Index("items_by_role", "project_id", "role", "language", "position"),
)

people = Table(
    "people",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("project_id", ForeignKey("projects.id"), nullable=False),
    Column("public_id", String(32), nullable=False, unique=True),
    Column("role", String(16), nullable=False),
    Column("name", Text),
    Column("language", String(64)),
    Column("works_in", Json),
    Column("note", Text),
    Column("key_hash", String(64), nullable=False, unique=True),
    Column("key_expires_at", Moment, nullable=False),
    Column("invited_at", Moment, nullable=False),
    Column("joined_at", Moment),
    Column("consented_at", Moment),
    Column("consent", Text),
    Column("revoked_at", Moment),
    Column("exam_attempts", Integer, nullable=False),
    Column("exam_passed_at", Moment),
    Column("out_at", Moment),
    Column("exam_figures", Json),
    Index("people_of_project", "project_id"),
)

assignments = Table(
    "assignments",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("project_id", ForeignKey("projects.id"), nullable=False),
    Column("item_id", ForeignKey("items.id"), nullable=False),
    Column("person_id", ForeignKey("people.id"), nullable=False),
    Column("purpose", String(16), nullable=False),
    Column("round", Integer, nullable=False),
    Column("subject_id", ForeignKey("assignments.id")),
    Column("state", String(16), nullable=False),
    Column("version", Integer, nullable=False),
    Column("layer", Json, nullable=False),
    Column("suggestions", Json),
    Column("message", Text),
    Column("seconds", Float, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("opened_at", Moment),
    Column("changed_at", Moment, nullable=False),
    Column("submitted_at", Moment),
    Index("assignments_of_person", "person_id", "state"),
    Index("assignments_of_item", "item_id", "purpose"),
    Index("assignments_of_project", "project_id", "purpose", "state"),
    Index("assignments_of_subject", "subject_id"),
    Index(
        "assigned_once",
        "item_id",
        "person_id",
        "purpose",
        "round",
        text("coalesce(subject_id, 0)"),
        unique=True,
    ),
)

events = Table(
    "events",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("event_id", String(64), nullable=False, unique=True),
    Column("project_id", ForeignKey("projects.id"), nullable=False),
    Column("assignment_id", ForeignKey("assignments.id")),
    Column("item_id", ForeignKey("items.id")),
    Column("person_id", ForeignKey("people.id")),
    Column("kind", String(32), nullable=False),
    Column("base_version", Integer),
    Column("version", Integer),
    Column("state", String(16)),
    Column("layer", Json),
    Column("payload", Json),
    Column("digest", String(64)),
    Column("seconds", Float, nullable=False),
    Column("client_at", Moment),
    Column("at", Moment, nullable=False),
    Index("events_of_assignment", "assignment_id", "id"),
    Index("events_of_item", "item_id", "id"),
    Index("events_of_project", "project_id", "id"),
)

sessions = Table(
    "sessions",
    METADATA,
    Column("token_hash", String(64), primary_key=True),
    Column("person_id", ForeignKey("people.id"), nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("seen_at", Moment, nullable=False),
    Column("expires_at", Moment, nullable=False),
)
