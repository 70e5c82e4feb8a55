"""Imports the made-up seeds of `build`, the misbehaving server of `http` and the real one of `study`."""

from __future__ import annotations

import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2]
for folder in ("datasets", "http", "study"):
    sys.path.insert(0, str(TESTS / folder))
