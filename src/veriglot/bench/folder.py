"""Where everything of a bench lies in the folder of its run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Folder"]

_UNSAFE = re.compile(r"[^\w.-]+")


@dataclass(frozen=True)
class Folder:
    """The folder of a run: `results.json`, the views of it, and `cells/` with what every system said.

    Attributes:
        path: the folder.
    """

    path: Path

    @property
    def results(self) -> Path:
        """The results as JSON."""
        return self.path / "results.json"

    @property
    def page(self) -> Path:
        """The leaderboard as HTML."""
        return self.path / "leaderboard.html"

    @property
    def markdown(self) -> Path:
        """The leaderboard as Markdown."""
        return self.path / "leaderboard.md"

    @property
    def latex(self) -> Path:
        """The leaderboard as LaTeX."""
        return self.path / "leaderboard.tex"

    @property
    def unranked(self) -> tuple[Path, Path]:
        """What systems say where no data set has labels, as HTML and as Markdown: that is no leaderboard."""
        return self.path / "answers.html", self.path / "answers.md"

    @property
    def tables(self) -> Path:
        """The folder of tables as CSV."""
        return self.path / "tables"

    def cell(self, data: str, system: str, key: str) -> Path:
        """The folder of what a system said of a data set; `key` is a digest of all that it depends on."""
        name = "-".join(_UNSAFE.sub("_", part)[:40] for part in (data, system))
        return self.path / "cells" / f"{name}-{key[:16]}"
