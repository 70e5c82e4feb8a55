"""Imports the small detectors of the folder above, for the tests of this one."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "detectors"))
