"""The scorers by name; third parties register theirs in the entry point group `veriglot.scorers`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from veriglot.plugins import Entry, Registry, read_package_data

if TYPE_CHECKING:
    from veriglot.records import Scorer

__all__ = ["SCORERS", "load_scorer"]

SCORERS = Registry("scorer", "veriglot.scorers", read_package_data(__package__, "scorers.toml", dict[str, Entry]))


def load_scorer(name: str, **options: Any) -> Scorer:
    """A scorer by name.

    Args:
        name: a name of `SCORERS`.
        options: of the scorer; see its class.

    Raises:
        UnknownNameError: no such scorer, or no such option; the message suggests similar names.
        UsageError: an invalid option.
    """
    scorer: Scorer = SCORERS.make(name, **options)
    return scorer
