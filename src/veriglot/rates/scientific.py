"""scipy's statistics, loaded on use: distributions and tests that nobody should write twice."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from veriglot.errors import MissingExtraError

__all__ = ["statistics"]


def statistics(what: str) -> Any:
    """The module `scipy.stats`, for `what` (named in the error).

    Raises:
        MissingExtraError: the extra `stats` is not installed.
    """
    try:
        return import_module("scipy.stats")
    except ModuleNotFoundError as error:
        raise MissingExtraError(what, "stats") from error
