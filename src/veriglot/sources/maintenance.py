"""Maintenance templates: what a Wikipedia's own editors say is wrong with an article, recognised per language.

`maintenance_templates.json` holds names by edition and kind. The English names count in every edition, as most keep
them as redirects. The table was written down without access to the wikis; `learned` adds what they say themselves:
which template of an edition belongs to an English one. Where that can be asked, ask it.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import msgspec

from veriglot.errors import UnknownNameError
from veriglot.sources.editions import edition_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from veriglot.sources.wikipedia import Wikipedia

__all__ = ["KINDS", "MFAVA_KINDS", "Maintenance", "learned"]

KINDS = ("unreferenced", "more-references", "failed-verification", "under-construction", "disputed", "disambiguation")
"""What templates say: no source at all; too few; a source that does not say it; unfinished; doubted; no article."""

MFAVA_KINDS = ("unreferenced", "failed-verification", "under-construction", "disputed", "disambiguation")
"""Those that mFAVA leaves out (A.5): unfinished or not verified; and pages that are no articles."""

Names = dict[str, dict[str, list[str]]]


@cache
def _table() -> Names:
    data = files(__package__).joinpath("maintenance_templates.json").read_bytes()
    return msgspec.json.decode(data, type=Names)


class Maintenance:
    """Recognises the maintenance templates of one language.

    Args:
        language: whose Wikipedia.
        kinds: those of `KINDS` that count.
        more: kind -> further names, such as `learned` gives.

    Attributes:
        known: how many different names count, the English ones included.
        own: how many of them are the edition's own.
        without_own: the kinds of which no name of the edition's own is known, in order; only the English ones are
            recognised.

    Raises:
        UnknownNameError: no such language or kind.
    """

    def __init__(
        self, language: str, kinds: Iterable[str] = MFAVA_KINDS, more: Mapping[str, Iterable[str]] | None = None
    ) -> None:
        self.kinds = tuple(kinds)
        for kind in (*self.kinds, *(more or {})):
            if kind not in KINDS:
                raise UnknownNameError("kind of maintenance template", kind, KINDS)
        edition = edition_of(language)
        self._kind_of: dict[str, str] = {}
        without: list[str] = []
        for kind in self.kinds:
            own = [*_table().get(edition, {}).get(kind, ()), *(more or {}).get(kind, ())]
            if not own:
                without.append(kind)
            for name in (*own, *_table()["en"].get(kind, ())):
                self._kind_of.setdefault(_key(name), kind)
        self.without_own = tuple(without)
        english = {_key(name) for names in _table()["en"].values() for name in names}
        self.known = len(self._kind_of)
        self.own = self.known if edition == "en" else len(self._kind_of.keys() - english)

    def found(self, templates: Iterable[str]) -> dict[str, str]:
        """Kind -> the first of the templates that is of this kind.

        Args:
            templates: names without their namespace.
        """
        found: dict[str, str] = {}
        for name in templates:
            kind = self._kind_of.get(_key(name))
            if kind is not None:
                found.setdefault(kind, name)
        return found


def learned(english: Wikipedia, local: Wikipedia, kinds: Iterable[str] = MFAVA_KINDS) -> dict[str, list[str]]:
    """What the templates of an edition are called, as the wikis themselves link them.

    Args:
        english: the English Wikipedia, whose templates lead to the others.
        local: the edition that is asked about; the redirects to its templates are asked of it.

    Returns:
        Kind -> names in the edition, sorted.

    Raises:
        HttpError, SourceError: no answer.
    """
    names: dict[str, list[str]] = {}
    for kind in kinds:
        linked = english.template_names(_table()["en"].get(kind, ()))
        there = linked.get(local.edition, set())
        if there and local.edition != english.edition:
            there = there | local.template_names(sorted(there)).get(local.edition, set())
        names[kind] = sorted(there)
    return names


def _key(name: str) -> str:
    return " ".join(name.replace("_", " ").split()).casefold()
