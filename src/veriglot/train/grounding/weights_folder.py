"""A folder of weights that appears whole or not at all."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["as_json", "whole_folder"]


@contextmanager
def whole_folder(out: Path) -> Iterator[Path]:
    """A folder beside `out` to write to, whose files are moved into `out` when all are written."""
    part = out.with_name(out.name + ".partial")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        yield part
        out.mkdir(exist_ok=True)
        for path in part.iterdir():
            path.replace(out / path.name)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def as_json(value: msgspec.Struct) -> bytes:
    """A record as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n"
