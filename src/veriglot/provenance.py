"""Where a figure comes from: content hashes, versions and the one-line signature that a paper can cite."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["digest", "file_sha256", "signature"]

_BLOCK = 1 << 20


def file_sha256(path: str | Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal, read in blocks."""
    hasher = hashlib.sha256()
    with Path(path).open("rb") as file:
        while block := file.read(_BLOCK):
            hasher.update(block)
    return hasher.hexdigest()


def digest(parts: Iterable[str | bytes]) -> str:
    """SHA-256 of a sequence of texts, in hexadecimal. Each part is framed by its length, so joins cannot collide."""
    hasher = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        hasher.update(len(data).to_bytes(8, "little"))
        hasher.update(data)
    return hasher.hexdigest()


def signature(**parts: object) -> str:
    """One stable line `key:value|key:value`, in the order given; None is left out.

    Floats are written in shortest form, so equal settings give equal lines. The separators inside a value are
    replaced, so that a line always splits back into its parts.
    """
    return "|".join(f"{key}:{_plain(value)}" for key, value in parts.items() if value is not None)


def _plain(value: object) -> str:
    text = repr(value) if isinstance(value, float) else str(value)
    return text.replace("|", "/").replace("\n", " ")
