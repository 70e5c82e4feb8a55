"""Veriglot finds, measures and compares the hallucinations of language models, in every language."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from veriglot.detectors import detect, load_detector
    from veriglot.formats import read, write

__version__ = "0.1.0"

__all__ = ["__version__", "detect", "load_detector", "read", "write"]

_HOMES = {
    "detect": "veriglot.detectors",
    "load_detector": "veriglot.detectors",
    "read": "veriglot.formats",
    "write": "veriglot.formats",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
