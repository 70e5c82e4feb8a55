"""Which Wikipedia is in which language: the edition of a language tag, and its address.

An edition is called by the first part of its host name. That is the language's code nearly everywhere; the exceptions
stand in `editions.json` (an empty name: there is no edition).
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import msgspec

from veriglot.errors import UsageError
from veriglot.records.languages import language

__all__ = ["edition_of", "language_of", "wiki_url"]


@cache
def _exceptions() -> dict[str, str]:
    return msgspec.json.decode(files(__package__).joinpath("editions.json").read_bytes(), type=dict[str, str])


def edition_of(tag: str) -> str:
    """The edition of a language: `de`; `zh` for `zh-Hant`, `zh-yue` for Cantonese.

    Args:
        tag: anything that `records.language` takes.

    Raises:
        UnknownNameError: no such language.
        UsageError: there is no Wikipedia in it.
    """
    known = language(tag)
    for key in (known.tag, known.base):
        if key in _exceptions():
            name = _exceptions()[key]
            break
    else:
        name = known.base
    if not name:
        raise UsageError(f"There is no Wikipedia in {known.name}.")
    return name


def language_of(edition: str) -> str:
    """The language tag of an edition: the other way round.

    Raises:
        UnknownNameError: the language table does not hold the edition's language.
    """
    back = {name: tag for tag, name in _exceptions().items() if name}
    return language(back.get(edition, edition)).tag


def wiki_url(edition: str) -> str:
    """The address of an edition, with the slash at its end that Wikidata writes."""
    return f"https://{edition}.wikipedia.org/"
