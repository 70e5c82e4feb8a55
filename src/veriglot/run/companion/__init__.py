"""Packages that cannot live beside ours: each in a Python environment of its own, spoken to over a pipe.

docs/neural_scorers.md describes the protocol; `serve.py` and `engines/` are what runs on the other side, and import
nothing of Veriglot.
"""

from __future__ import annotations

from veriglot.run.companion.asking import Keeper, Refused, Result, ask
from veriglot.run.companion.environment import ENVIRONMENTS, MissingEnvironmentError, python_of
from veriglot.run.companion.process import Companion, CompanionError

__all__ = [
    "ENVIRONMENTS",
    "Companion",
    "CompanionError",
    "Keeper",
    "MissingEnvironmentError",
    "Refused",
    "Result",
    "ask",
    "python_of",
]
