"""Two kinds of columns that mean the same in every database."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import String, Text
from sqlalchemy.types import TypeDecorator

if TYPE_CHECKING:
    from sqlalchemy.engine import Dialect

__all__ = ["Json", "Moment", "now", "read_json", "read_moment", "write_json", "write_moment"]

_FORM = "%Y-%m-%dT%H:%M:%S.%fZ"


def now() -> datetime:
    """The time, in UTC."""
    return datetime.now(UTC)


def write_moment(moment: datetime) -> str:
    """A time as ISO 8601 in UTC with microseconds: 27 characters, which sort by time."""
    return moment.astimezone(UTC).strftime(_FORM)


def read_moment(text: str) -> datetime:
    """The time that `write_moment` wrote."""
    return datetime.strptime(text, _FORM).replace(tzinfo=UTC)


def write_json(data: Any) -> str:
    """JSON in ASCII: PostgreSQL takes no null characters in texts, and no database half characters."""
    return json.dumps(data, ensure_ascii=True, sort_keys=True, separators=(",", ":"))


def read_json(text: str) -> Any:
    """The data that `write_json` wrote."""
    return json.loads(text)


class Moment(TypeDecorator[datetime]):
    """A time, kept as text."""

    impl = String(27)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> str | None:  # noqa: ARG002, D102
        return None if value is None else write_moment(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002, D102
        return None if value is None else read_moment(value)


class Json(TypeDecorator[Any]):
    """Plain data, kept as text; None is the database's NULL."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:  # noqa: ARG002, D102
        return None if value is None else write_json(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:  # noqa: ARG002, D102
        return None if value is None else read_json(value)
