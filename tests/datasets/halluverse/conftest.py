"""Imports the servers of the tests of `http` and `sources`."""

from __future__ import annotations

import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2]
for folder in ("http", "wikipedia"):
    sys.path.insert(0, str(TESTS / folder))
