"""Provenance of results: content hashes, versions and the one-line signature for papers."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

__version__ = "0.1.0"

__all__ = ["__version__", "checkpoint_revision", "digest", "file_sha256", "signature", "stated_threshold"]

_BLOCK = 1 << 20
_NO_WEIGHTS = {".md", ".png", ".jpg", ".lock"}


def file_sha256(path: str | Path) -> str:
    """SHA-256 of a file, in hexadecimal; the file is read in blocks."""
    hasher = hashlib.sha256()
    with Path(path).open("rb") as file:
        while block := file.read(_BLOCK):
            hasher.update(block)
    return hasher.hexdigest()


def digest(parts: Iterable[str | bytes]) -> str:
    """SHA-256 of a sequence of texts, in hexadecimal. Each part is prefixed with its length, to prevent collisions."""
    hasher = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        hasher.update(len(data).to_bytes(8, "little"))
        hasher.update(data)
    return hasher.hexdigest()


def checkpoint_revision(model: str | Path, config: Any = None) -> str:
    """Revision of a model: the commit if it is from the hub, otherwise a hash of its file or of the files in its
    folder.

    It reads all weights, which takes about as long as loading them: a partial hash could confuse a fine-tuned model
    with its base model.

    Args:
        model: a folder, a file, or a name on the hub.
        config: the model's configuration, which may contain the commit.

    Returns:
        16 hexadecimal digits or a commit; `unknown` if there is neither.
    """
    folder = Path(model)
    if folder.is_file():
        return file_sha256(folder)[:16]
    if not folder.is_dir():
        return str(getattr(config, "_commit_hash", None) or "unknown")
    parts = []
    for path in sorted(folder.rglob("*")):  # without documentation and hidden folders
        name = path.relative_to(folder)
        hidden = any(part.startswith(".") for part in name.parent.parts)
        if path.is_file() and path.suffix not in _NO_WEIGHTS and not hidden:
            parts += [name.as_posix(), file_sha256(path)]
    return digest(parts)[:16]


def signature(**parts: object) -> str:
    """One stable line `key:value|key:value`, in the given order, without None values.

    Floats have their shortest form, so equal settings give equal lines. Separators inside values are replaced, so every
    line can be split into its parts.
    """
    return "|".join(f"{key}:{_plain(value)}" for key, value in parts.items() if value is not None)


def stated_threshold(line: str | None) -> float | None:
    """The threshold in a signature, from 0 to 1; None if there is none."""
    stated = dict(part.partition(":")[::2] for part in (line or "").split("|")).get("threshold", "")
    try:
        threshold = float(stated)
    except ValueError:
        return None
    return threshold if 0.0 <= threshold <= 1.0 else None


def _plain(value: object) -> str:
    text = repr(value) if isinstance(value, float) else str(value)
    return text.replace("|", "/").replace("\n", " ")
