"""Are the files of a model what the registry says? Hashed once, then known by size and time of change.

A marker beside the files holds what each of them looked like when its hash was right. As long as size and time are the
same, opening a model costs a look at the file system; otherwise the files are hashed again.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from veriglot.provenance import file_sha256
from veriglot.weights.errors import DamagedWeightsError, MissingWeightsError

if TYPE_CHECKING:
    from pathlib import Path

    from veriglot.weights.registry import Model

__all__ = ["looks_verified", "mark", "present", "verify"]


class _Seen(msgspec.Struct, frozen=True):
    path: str
    bytes: int
    changed_ns: int
    sha256: str


def present(model: Model, root: Path) -> bool:
    """Whether every file of the model is below `root`, whatever is in it."""
    return all((root / file.name).is_file() for file in model.files)


def looks_verified(model: Model, root: Path, marker: Path) -> bool:
    """Whether the files are as they were when their hashes were found right; reads no file but the marker."""
    try:
        return _read(marker) == _look(model, root)
    except (OSError, msgspec.MsgspecError):
        return False


def verify(model: Model, root: Path, marker: Path) -> None:
    """Hold the files below `root` against the registry, and remember that they were right.

    Raises:
        MissingWeightsError: a file is not there.
        DamagedWeightsError: a file's size or hash is another.
    """
    if looks_verified(model, root, marker):
        return
    for file in model.files:
        path = root / file.name
        if not path.is_file():
            raise MissingWeightsError(f"{path}, a file of the model {model.name!r}, is not there.")
        size = path.stat().st_size
        if size != file.bytes:
            raise DamagedWeightsError(f"{path} has {size:,} bytes, and should have {file.bytes:,}.")
        found = file_sha256(path)
        if found != file.sha256:
            raise DamagedWeightsError(f"{path} has the SHA-256 {found}, and should have {file.sha256}.")
    with suppress(
        OSError
    ):  # a folder that others keep for us: it is then hashed at every start, and right all the same
        mark(model, root, marker)


def mark(model: Model, root: Path, marker: Path) -> None:
    """Remember what the verified files look like now. The marker appears whole or not at all."""
    marker.parent.mkdir(parents=True, exist_ok=True)
    draft = marker.with_name(f"{marker.name}.{os.getpid()}")
    try:
        draft.write_bytes(msgspec.json.encode(_look(model, root)))
        draft.replace(marker)
    finally:
        draft.unlink(missing_ok=True)


def _look(model: Model, root: Path) -> list[_Seen]:
    seen = []
    for file in model.files:
        path = root / file.name
        state = path.stat()
        seen.append(_Seen(str(path), state.st_size, state.st_mtime_ns, file.sha256))
    return seen


def _read(marker: Path) -> list[_Seen]:
    return msgspec.json.decode(marker.read_bytes(), type=list[_Seen])
