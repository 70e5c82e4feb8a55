"""The servers of these tests stand beside them; the one that misbehaves is that of the tests of `http`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "http"))
