"""Taxonomies: named sets of span types, and the mappings between them. The tables are data files in this folder."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import msgspec

from veriglot.errors import UnknownNameError, UsageError
from veriglot.plugins import read_package_data

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["SOURCE_FLAGS", "Taxonomy", "taxonomies", "taxonomy", "taxonomy_with"]


SOURCE_FLAGS = ("wrong_language", "nonsensical", "spelling_errors", "mixed_languages")
"""Faults of the source of a translation (HAT, section 3.3). Flags that begin with `source_` are such faults too."""


class Taxonomy(msgspec.Struct, frozen=True):
    """A named set of span types.

    Attributes:
        source: paper and section that define it.
        types: type name to its meaning.
        flags: flags that an annotation in this taxonomy may have.
        clean: the types that mark text as supported, not as hallucinated.
        name: its name.
    """

    source: str
    types: dict[str, str]
    flags: tuple[str, ...] = ()
    clean: tuple[str, ...] = ()
    name: str = ""

    def check(self, type_: str) -> str:
        """Return `type_` if it belongs to the taxonomy.

        Raises:
            UnknownNameError: it does not; the message suggests similar names.
        """
        if type_ not in self.types:
            raise UnknownNameError(f"type in the taxonomy {self.name!r}", type_, self.types)
        return type_

    def to(self, other: str) -> dict[str, str]:
        """The type of `other` for each type of this taxonomy; a type without a counterpart is absent.

        Raises:
            UnknownNameError: `other` is not a taxonomy.
            UsageError: no mapping is defined between the two.
        """
        if taxonomy(other).name == self.name:
            return {name: name for name in self.types}
        for mapping in _mappings():
            if mapping.source == self.name and mapping.target == other:
                return dict(mapping.types)
        raise UsageError(
            f"There is no mapping from the taxonomy {self.name!r} to {other!r}.",
            f"It maps to: {', '.join(m.target for m in _mappings() if m.source == self.name)}.",
        )


class _Mapping(msgspec.Struct, frozen=True):
    source: str = msgspec.field(name="from")
    target: str = msgspec.field(name="to")
    types: dict[str, str] = {}


@cache
def _mappings() -> list[_Mapping]:
    return read_package_data(__package__, "taxonomy_mappings.json", list[_Mapping])


@cache
def taxonomies() -> dict[str, Taxonomy]:
    """Every taxonomy by name."""
    table = read_package_data(__package__, "taxonomies.json", dict[str, Taxonomy])
    return {name: msgspec.structs.replace(entry, name=name) for name, entry in table.items()}


def taxonomy(name: str) -> Taxonomy:
    """The taxonomy with that name.

    Raises:
        UnknownNameError: there is none; the message suggests similar names.
    """
    try:
        return taxonomies()[name]
    except KeyError:
        raise UnknownNameError("taxonomy", name, taxonomies()) from None


def taxonomy_with(types: Iterable[str]) -> str | None:
    """The first taxonomy that has all of these types; None if there is none."""
    wanted = set(types)
    return next((name for name, entry in taxonomies().items() if wanted <= entry.types.keys()), None)
