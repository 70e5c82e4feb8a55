"""Where the work is kept: SQLite or PostgreSQL, with every change an event (needs the extra `annotate`)."""

from veriglot.annotate.store.errors import Conflict, NotFound, Refused, StoreError
from veriglot.annotate.store.opening import Store, open_store
from veriglot.annotate.store.rows import (
    Appended,
    Assignment,
    Batch,
    BatchState,
    Event,
    Item,
    ItemRole,
    NewEvent,
    Person,
    ProjectRow,
    Purpose,
    Role,
    SessionRow,
    State,
)
from veriglot.annotate.store.transaction import Reading, Writing

__all__ = [
    "Appended",
    "Assignment",
    "Batch",
    "BatchState",
    "Conflict",
    "Event",
    "Item",
    "ItemRole",
    "NewEvent",
    "NotFound",
    "Person",
    "ProjectRow",
    "Purpose",
    "Reading",
    "Refused",
    "Role",
    "SessionRow",
    "State",
    "Store",
    "StoreError",
    "Writing",
    "open_store",
]
