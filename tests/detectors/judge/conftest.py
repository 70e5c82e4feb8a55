"""The misbehaving server, the tiny model and the real server of other tests serve here too."""

from __future__ import annotations

import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2]
for folder in ("http", "llm", "study"):
    sys.path.insert(0, str(TESTS / folder))
