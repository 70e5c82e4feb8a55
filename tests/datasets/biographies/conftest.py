"""Imports the servers of the tests of HTTP and sources, and the tiny model of the LLM tests."""

from __future__ import annotations

import sys
from pathlib import Path

for _area in ("http", "wikipedia", "llm"):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / _area))
