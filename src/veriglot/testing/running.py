"""Runs checks one by one; one that breaks down is a breach like any other."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING

from veriglot.testing.report import Breach, ContractError, Report

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = ["held", "run_checks", "told"]


def run_checks(checks: Mapping[str, Callable[[], Iterator[str]]]) -> list[Breach]:
    """What every check yields; an exception is a breach of the check that it ended."""
    breaches: list[Breach] = []
    for name, check in checks.items():
        try:
            breaches.extend(Breach(name, what) for what in check())
        except Exception as error:
            breaches.append(Breach(name, f"raised {told(error)}"))
    return breaches


def told(error: Exception) -> str:
    """An exception and the line that it comes from."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{place}"


def held(report: Report) -> Report:
    """The report, if the contract is kept.

    Raises:
        ContractError: otherwise.
    """
    if report.breaches:
        raise ContractError(report)
    return report
