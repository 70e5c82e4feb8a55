"""Groups of languages that figures are averaged and win rates counted within: by script, family and resourcedness.

By script as hat groups them (section 4.3.2): Latin or not, with English in both, since one side of each of its pairs is
English; so a pair is Latin where both its languages are. By resourcedness as kang does (its table of reference-based
metrics), for the 19 languages that it groups; the table is a data file beside this one.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import msgspec

from veriglot.errors import UnknownNameError
from veriglot.records.languages import language

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from veriglot.records.languages import Language

__all__ = ["ALL", "GROUPINGS", "Grouping", "groupings", "resources", "scopes", "script_group"]

ALL = "all"
LATIN, NON_LATIN = "latin", "non_latin"


class Grouping(msgspec.Struct, frozen=True):
    """A published grouping of languages: where it stands, and group to primary subtags, the richest group first."""

    source: str
    groups: dict[str, tuple[str, ...]]


@cache
def groupings() -> dict[str, Grouping]:
    """The groupings that are data, by name."""
    data = files(__package__).joinpath("groups.json").read_bytes()
    return msgspec.json.decode(data, type=dict[str, Grouping])


def script_group(*tags: str) -> str | None:
    """`latin` where every language is written in Latin script, otherwise `non_latin`; None where one is not known."""
    known = [_known(tag) for tag in tags]
    if not known or None in known:
        return None
    return LATIN if all(entry is not None and entry.script == "Latn" for entry in known) else NON_LATIN


def resources(*tags: str) -> str | None:
    """`high`, `middle` or `low` after kang, the lowest of the languages; None where one is not among its 19."""
    groups = groupings()["resources"].groups
    found = [_group_of(tag, groups) for tag in tags]
    if not found or None in found:
        return None
    order = list(groups)
    return max((name for name in found if name is not None), key=order.index)


def _script(*tags: str) -> str | None:
    names = sorted({entry.script for tag in tags if (entry := _known(tag))})
    return f"script:{'+'.join(names)}" if names else None


def _family(*tags: str) -> str | None:
    names = sorted({entry.family.partition(" (")[0] for tag in tags if (entry := _known(tag))})
    return f"family:{'+'.join(names)}" if names else None


GROUPINGS: dict[str, Callable[..., str | None]] = {
    "latin": script_group,
    "resources": resources,
    "script": _script,
    "family": _family,
}


def scopes(
    cells: Mapping[str, Sequence[str]],
    by: Sequence[str] = ("latin", "resources"),
    own: Mapping[str, Collection[str]] | None = None,
) -> dict[str, tuple[str, ...]]:
    """Group to its cells, for `wins.win_rates` and `wins.scope_means`.

    Args:
        cells: name of a cell to the tags of its languages: one, or those of the evidence and the response.
        by: groupings of `GROUPINGS`.
        own: further groups, by name, of languages: a cell belongs to one where all its languages do. Languages may be
            given as `language` takes them.

    Returns:
        `all` first, then the groups that have any cell, in a fixed order. A cell whose language a grouping does not
        know is in none of its groups.

    Raises:
        UnknownNameError: no such grouping, or no such language in `own`.
    """
    unknown = next((name for name in by if name not in GROUPINGS), None)
    if unknown is not None:
        raise UnknownNameError("grouping of languages", unknown, GROUPINGS)
    found: dict[str, tuple[str, ...]] = {ALL: tuple(cells)}
    for name in by:
        members: dict[str, list[str]] = {}
        for cell, tags in cells.items():
            group = GROUPINGS[name](*tags)
            if group is not None:
                members.setdefault(group, []).append(cell)
        found |= {group: tuple(members[group]) for group in _ordered(name, members)}
    for name, wanted in (own or {}).items():
        bases = {language(tag).tag for tag in wanted}
        found[name] = tuple(cell for cell, tags in cells.items() if tags and all(_tag(tag) in bases for tag in tags))
    return found


def _ordered(name: str, members: Collection[str]) -> list[str]:
    known = list(groupings()[name].groups) if name in groupings() else [LATIN, NON_LATIN]
    return sorted(members, key=lambda group: (known.index(group) if group in known else len(known), group))


def _known(tag: str) -> Language | None:
    try:
        return language(tag)
    except UnknownNameError:
        return None


def _tag(tag: str) -> str:
    entry = _known(tag)
    return entry.tag if entry else tag


def _group_of(tag: str, groups: Mapping[str, tuple[str, ...]]) -> str | None:
    entry = _known(tag)
    return next((name for name, bases in groups.items() if entry and entry.base in bases), None)
