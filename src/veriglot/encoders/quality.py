"""In which languages an encoder was measured, and good; the figures are in docs/encoders.md."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import msgspec

from veriglot.errors import UnknownNameError
from veriglot.records.languages import language

if TYPE_CHECKING:
    from collections.abc import Collection

    from veriglot.encoders.encoder import Strength

__all__ = ["languages_of", "strength_among", "strength_of"]


class _Quality(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    measured: tuple[str, ...]  # tags of the language table: a language in the script that was measured


@cache
def _table() -> dict[str, _Quality]:
    data = files(__package__).joinpath("quality.json").read_bytes()
    return msgspec.json.decode(data, type=dict[str, _Quality])


@cache
def languages_of(encoder: str) -> frozenset[str]:
    """Base tags of the languages in which `encoder` was measured and good; none for one that is not in the table."""
    known = _table().get(encoder)
    return frozenset(language(tag).base for tag in known.measured) if known else frozenset()


def strength_of(encoder: str, tag: str | None) -> Strength:
    """`measured` or `weak` by the table, for a language in a script; see `Encoder.strength`."""
    known = _table().get(encoder)
    return strength_among(known.measured if known else (), tag)


def strength_among(measured: Collection[str], tag: str | None) -> Strength:
    """`measured` where the language of `tag`, in its script, is one of `measured`, tags of the language table."""
    if not tag:
        return "weak"
    try:
        return "measured" if language(tag).tag in measured else "weak"
    except UnknownNameError:
        return "weak"
