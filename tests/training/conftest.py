"""Fixtures of the training tests. This file also puts its folder on the path, for the modules beside it."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "judging"))
