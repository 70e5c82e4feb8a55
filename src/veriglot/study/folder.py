"""The folder of a study's run: what lies where."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

from veriglot.errors import UsageError
from veriglot.provenance import digest

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Folder", "file_name"]

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def file_name(name: str) -> str:
    """A name as part of a path, on every system; other names never give the same.

    What is not a letter, digit, point, line or underscore becomes a line, and the name's hash is added where anything
    had to change (capitals count, since some systems do not tell them apart).
    """
    safe = _UNSAFE.sub("-", name).strip(".-")[:80]
    if safe == name and name == name.lower():
        return safe
    return f"{safe}-{digest([name])[:8]}"


class Folder:
    """Paths in the folder of a run.

    Args:
        path: the folder, which need not be there yet.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.study = path / "study.toml"
        self.plan = path / "plan.json"
        self.rates = path / "rates.json"
        self.results = path / "results.json"
        self.tables = path / "tables"
        self.report = path / "report.html"
        self.cache = path / "cache"
        self.given = path / "responses" / "given.json"

    def responses(self, model: str) -> Path:
        """The responses of one model."""
        return self.path / "responses" / f"{file_name(model)}.jsonl"

    def predictions(self, detector: str, model: str) -> Path:
        """What one detector (by its label) said of them."""
        return self.path / "predictions" / file_name(detector) / f"{file_name(model)}.jsonl"

    def profile(self, detector: str) -> Path:
        """The error profile that the run measured for a detector."""
        return self.path / "profiles" / f"{file_name(detector)}.json"

    def take(self) -> None:
        """Make the folder, or see that it is the folder of a run.

        Raises:
            UsageError: it is something else.
        """
        if self.path.exists() and not self.path.is_dir():
            raise UsageError(f"{self.path} is a file.", remedy="Name a folder with -o.")
        if self.path.is_dir() and not self.study.exists() and any(self._foreign()):
            raise UsageError(
                f"{self.path} holds files, and is no run of a study.", remedy="Name a new or empty folder with -o."
            )
        self.path.mkdir(parents=True, exist_ok=True)

    def _foreign(self) -> list[Path]:
        return [path for path in self.path.iterdir() if path.name not in {"run.lock", "study.toml.partial"}]

    def clear(self) -> None:
        """Remove what the run made, but for the cache of calls: what was paid stays paid."""
        for name in ("responses", "predictions", "profiles", "tables"):
            shutil.rmtree(self.path / name, ignore_errors=True)
        for path in (self.plan, self.rates, self.results, self.report):
            path.unlink(missing_ok=True)
