"""Alembic's way in: the connection comes from `store`, in whose transaction the steps run."""

from __future__ import annotations

from alembic import context

context.configure(connection=context.config.attributes["connection"])
context.run_migrations()
