"""What translation models call the languages: NLLB, M2M-100 and mBART-50 each have codes of their own."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Literal, get_args

import msgspec

from veriglot.errors import UnknownNameError
from veriglot.records.languages import language

__all__ = ["FAMILIES", "Family", "code_of", "tags_of"]

Family = Literal["nllb", "m2m100", "mbart50"]
FAMILIES: tuple[Family, ...] = get_args(Family)


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    source: str
    codes: dict[str, dict[Family, str]]


@cache
def _codes() -> dict[str, dict[Family, str]]:
    return msgspec.json.decode(files(__package__).joinpath("codes.json").read_bytes(), type=_Table).codes


def code_of(tag: str, family: Family) -> str | None:
    """What a family of models calls a language, such as `deu_Latn` for `de`; None where the family does not have it.

    Args:
        tag: a BCP 47 tag or a name that the language table knows. A script that the family does not write the language
            in is another language here: `sr-Latn` has no code.
        family: `nllb` (FLORES-200 codes), `m2m100` or `mbart50`.
    """
    try:
        entry = language(tag)
    except UnknownNameError:
        return None
    return _codes().get(entry.tag, {}).get(family)


def tags_of(family: Family) -> tuple[str, ...]:
    """The tags of the languages that a family has, sorted."""
    return tuple(sorted(tag for tag, row in _codes().items() if family in row))
