"""Files of JSON lines, as tests write and read them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from veriglot.records import encode

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def write_lines(path: Path, rows: Iterable[Any]) -> Path:
    """Records or plain values, one a line."""
    path.write_bytes(b"".join(encode(row) + b"\n" for row in rows))
    return path


def read_lines(path: Path) -> list[Any]:
    """Every line as it stands, parsed."""
    return [json.loads(line) for line in path.read_bytes().splitlines()]
