"""The servers of the tests of http and sources, and the tiny model of those of llm, serve here too."""

from __future__ import annotations

import sys
from pathlib import Path

for _area in ("http", "wikipedia", "llm"):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / _area))
