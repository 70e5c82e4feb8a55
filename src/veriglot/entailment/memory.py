"""What was judged before, by content: the latest pairs in memory, and all of them in a file where one is wanted."""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from veriglot.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    Row = NDArray[np.float32]

__all__ = ["Memory"]

_FILE = "entailment.sqlite"
_ASKED = 500  # keys in one statement
_TABLE = "CREATE TABLE IF NOT EXISTS judged (key BLOB PRIMARY KEY, row BLOB NOT NULL) WITHOUT ROWID"


class Memory:
    """Rows of three probabilities by pair and model. Threads may share it, and processes its file.

    Args:
        signature: of the model: two models never share a row.
        pairs: how many pairs to keep in memory, the least recently used dropped first; 0 keeps none.
        folder: where a file keeps every pair, made if it is not there; None for no file.

    Raises:
        UsageError: `pairs` is negative, or the folder cannot be used.
    """

    def __init__(self, signature: str, pairs: int, folder: str | Path | None = None) -> None:
        if pairs < 0:
            raise UsageError(f"The memory is to keep {pairs} pairs.", remedy="Give memory 0 or more.")
        self._salt = hashlib.blake2b(signature.encode(), digest_size=16).digest()
        self._pairs = pairs
        self._rows: OrderedDict[bytes, Row] = OrderedDict()
        self._lock = threading.Lock()
        self._folder = Path(folder) if folder is not None else None
        self._file = _opened(self._folder) if self._folder is not None else None

    def key(self, premise: str, hypothesis: str) -> bytes:
        """What a pair is known by: a hash of the model and of both texts."""
        data = premise.encode("utf-8", "surrogatepass")
        hasher = hashlib.blake2b(self._salt, digest_size=16)
        hasher.update(len(data).to_bytes(8, "little"))
        hasher.update(data)
        hasher.update(hypothesis.encode("utf-8", "surrogatepass"))
        return hasher.digest()

    def known(self, keys: Sequence[bytes]) -> dict[bytes, Row]:
        """The rows that are kept, by key."""
        with self._lock:
            found = {key: self._rows[key] for key in keys if key in self._rows}
            for key in found:
                self._rows.move_to_end(key)
            if self._file is not None:
                missing = [key for key in dict.fromkeys(keys) if key not in found]
                read = self._read(self._file, missing)
                self._keep(read)
                found.update(read)
        return found

    def put(self, rows: Mapping[bytes, Row]) -> None:
        """Keep rows; those of the file are on the disk when this returns."""
        with self._lock:
            self._keep(rows)
            if self._file is not None:
                try:
                    with self._file:
                        self._file.executemany(
                            "INSERT OR REPLACE INTO judged VALUES (?, ?)",
                            [(key, row.astype("<f4").tobytes()) for key, row in rows.items()],
                        )
                except sqlite3.Error as error:
                    raise _trouble(self._folder, error) from error

    def _keep(self, rows: Mapping[bytes, Row]) -> None:
        self._rows.update((key, row.copy()) for key, row in rows.items())  # a view would keep its whole batch alive
        while len(self._rows) > self._pairs:
            self._rows.popitem(last=False)

    def _read(self, file: sqlite3.Connection, keys: list[bytes]) -> dict[bytes, Row]:
        found: dict[bytes, Row] = {}
        try:
            for start in range(0, len(keys), _ASKED):
                some = keys[start : start + _ASKED]
                marks = ",".join("?" * len(some))
                for key, row in file.execute(f"SELECT key, row FROM judged WHERE key IN ({marks})", some):  # noqa: S608
                    found[key] = np.frombuffer(row, "<f4").astype(np.float32)
        except sqlite3.Error as error:
            raise _trouble(self._folder, error) from error
        return found

    def __len__(self) -> int:
        return len(self._rows)


def _opened(folder: Path) -> sqlite3.Connection:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = sqlite3.connect(folder / _FILE, timeout=60.0, check_same_thread=False)
        file.execute("PRAGMA journal_mode = WAL")
        file.execute("PRAGMA synchronous = NORMAL")  # what is lost with the machine is only judged again
        file.execute(_TABLE)
    except (sqlite3.Error, OSError) as error:
        raise _trouble(folder, error) from error
    return file


def _trouble(folder: Path | None, error: Exception) -> UsageError:
    return UsageError(
        f"The cache of judged pairs in {folder} cannot be used: {error}.", remedy="Give another folder as `cache`."
    )
