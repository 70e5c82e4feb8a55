"""What translation models call the languages: NLLB and SONAR, M2M-100 and mBART-50 each have codes of their own."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Literal, get_args

import msgspec

from veriglot.errors import UnknownNameError
from veriglot.records.languages import language, languages

__all__ = ["FAMILIES", "Family", "code_of", "tags_of"]

Family = Literal["nllb", "m2m100", "mbart50"]
FAMILIES: tuple[Family, ...] = get_args(Family)


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    source: str
    flores200: tuple[str, ...]  # lines of codes
    flores200_named: dict[str, str]  # those that are not made of an ISO 639 code and a script of our table
    m2m100: dict[str, str]
    mbart50: dict[str, str]


def code_of(tag: str, family: Family) -> str | None:
    """What a family of models calls a language, such as `deu_Latn` for `de`; None where the family does not have it.

    Args:
        tag: a BCP 47 tag or a name that the language table knows. A script that the family does not write the language
            in is another language here: `sr-Latn` has no code.
        family: `nllb` (FLORES-200 codes, which SONAR has too), `m2m100` or `mbart50`.
    """
    try:
        entry = language(tag)
    except UnknownNameError:
        return None
    return _codes()[family].get(entry.tag)


def tags_of(family: Family) -> tuple[str, ...]:
    """The tags of the languages that a family has, sorted."""
    return tuple(sorted(_codes()[family]))


@cache
def _codes() -> dict[Family, dict[str, str]]:
    """The codes of each family, by tag."""
    data = files(__package__).joinpath("translation_codes.json").read_bytes()
    table = msgspec.json.decode(data, type=_Table)
    known = frozenset(code for line in table.flores200 for code in line.split())
    flores = dict(table.flores200_named)
    for tag in languages():
        entry = language(tag)
        candidates = (f"{name}_{entry.script}" for name in (entry.base, *entry.aliases))
        found = next((code for code in candidates if code in known), None)
        if found is not None:
            flores.setdefault(entry.tag, found)
    return {"nllb": flores, "m2m100": table.m2m100, "mbart50": table.mbart50}
