"""The pseudo-language and the tiny models of this folder can be imported by name."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
