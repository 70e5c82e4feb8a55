"""Which types are compared, and how the types of the data and of the detector are brought to them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from veriglot.errors import UsageError
from veriglot.records import taxonomies, taxonomy

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Types", "compare_types", "holding"]


@dataclass
class Types:
    """The types that figures at level `category` are given for.

    Attributes:
        taxonomy: what they belong to; None where types are not compared.
        names: the types that mark text as unsupported; empty where types are not compared.
        detector: a type of the detector to the one it counts as.
        why: why types are not compared, or how they were mapped; empty where neither is worth saying.
    """

    taxonomy: str | None
    names: tuple[str, ...]
    detector: dict[str, str]
    why: str = ""
    _reference: dict[str, dict[str, str]] = field(default_factory=dict)

    def of_detector(self, types: Sequence[str | None]) -> tuple[str | None, ...]:
        """The detector's types as types of `taxonomy`; None where there is no counterpart."""
        return tuple(self.detector.get(name) if name is not None else None for name in types)

    def of_reference(self, source: str | None, types: Sequence[str | None]) -> tuple[str | None, ...]:
        """The types of reference spans as types of `taxonomy`; None where there is no counterpart."""
        if self.taxonomy is None or source is None:
            return (None,) * len(types)
        if source not in self._reference:
            self._reference[source] = _mapping(source, self.taxonomy) or {}
        mapping = self._reference[source]
        return tuple(mapping.get(name) if name is not None else None for name in types)


def _mapping(source: str, target: str) -> dict[str, str] | None:
    """Type to type, or None where no mapping is defined."""
    if source not in taxonomies():
        return None
    try:
        return taxonomy(source).to(target)
    except UsageError:
        return None


def holding(types: set[str], preferred: str | None = None) -> str | None:
    """The taxonomy that holds all of these types: the preferred one if it does, else the first."""
    if not types:
        return None
    order = ([preferred] if preferred in taxonomies() else []) + list(taxonomies())
    return next((name for name in order if name and types <= set(taxonomy(name).types)), None)


def compare_types(data: str | None, detector: str | None, asked: str | None, given: set[str]) -> Types:
    """Decide in which taxonomy types are compared.

    That is the one asked for, or the data's own if the detector's types lead to it, or else the detector's if the
    data's lead there. Where neither leads to the other, types are not compared and only binary figures are given.

    Args:
        data: taxonomy of the reference, or None.
        detector: taxonomy of the detector, or None to find the one that holds `given`.
        asked: the taxonomy that the user asked for, or None.
        given: types that the detector's predictions hold.

    Raises:
        UnknownNameError: `asked` or `detector` is no taxonomy.
        UsageError: a taxonomy was asked for to which types of the data or of the detector do not lead.
    """
    for name in (asked, detector):
        if name is not None:
            taxonomy(name)
    detector = detector or holding(given, data)
    if detector is None or data is None:
        side = "predictions" if detector is None else "labels"
        return Types(None, (), {}, f"types are not compared: the {side} are not of one known taxonomy")
    for target in [asked] if asked else [data, detector]:
        if target not in taxonomies():
            continue
        ours, theirs = _mapping(detector, target), _mapping(data, target)
        if ours is not None and theirs is not None:
            entry = taxonomy(target)
            names = tuple(name for name in entry.types if name not in entry.clean)
            mapped = {name for name in (detector, data) if name != target}
            why = f"types of {' and '.join(sorted(mapped))} are compared as those of {target}" if mapped else ""
            return Types(target, names, ours, why)
    if asked:
        raise UsageError(
            f"The types of the data ({data}) and of the detector ({detector}) do not both lead to {asked!r}.",
            remedy="Leave --taxonomy out to see the figures that can be had.",
        )
    return Types(None, (), {}, f"types are not compared: none of {data} and {detector} leads to the other")
