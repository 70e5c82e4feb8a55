"""The words by which the facts of a sentence are told apart, language by language.

They stand in `fact_rules.json`, which was written for Veriglot, and `months.json`, which `months_build` takes from the
Unicode Common Locale Data Repository. All words are casefolded.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import msgspec

__all__ = ["Rules", "languages_with_rules", "rules_of"]

_ENUMERATING = frozenset({"zh", "yue"})  # where the ideographic comma parts the items of a list, and no clauses


class _Entry(msgspec.Struct, forbid_unknown_fields=True):
    """One language as it stands in the data file; see `Rules`."""

    perhaps: str = ""
    always: str = ""
    verbs: str = ""
    pronouns: str = ""
    before: str = ""
    of: str = ""
    after: str = ""
    dates: str = ""
    topics: str = ""
    topic_endings: str = ""
    names: bool = True
    spaces: bool = False
    short: int = 3


@dataclass(frozen=True)
class Rules:
    """What is known of one language.

    Attributes:
        perhaps: words that begin a clause where both sides of them are long, or a verb or pronoun follows.
        always: words that begin a clause wherever they stand.
        verbs: copulas and auxiliaries; after an apposition they take the sentence up again.
        pronouns: subjects that begin a clause after one of `perhaps`.
        before: prepositions that make an adjunct of the date, number or name after them.
        of: those of `before` that tie a name to the noun before it instead.
        after: postpositions and the like that belong to the date or number before them.
        months: names of months.
        dates: other words of a date: year, century, era.
        topics: particles after which the sentence goes on, whatever the comma says.
        topic_endings: the same, as endings of words.
        names: whether a capital letter tells a name from a noun.
        spaces: whether a space may part clauses (Thai).
        commas: the marks that may part clauses.
        short: words that a clause has at the least.
    """

    perhaps: frozenset[str]
    always: frozenset[str]
    verbs: frozenset[str]
    pronouns: frozenset[str]
    before: frozenset[str]
    of: frozenset[str]
    after: frozenset[str]
    months: frozenset[str]
    dates: frozenset[str]
    topics: frozenset[str]
    topic_endings: tuple[str, ...]
    names: bool
    spaces: bool
    commas: str
    short: int

    @property
    def long(self) -> int:
        """Words on each side of one of `perhaps` that make two clauses of them."""
        return self.short + 2

    def in_date(self, word: str) -> bool:
        """Whether a casefolded word may stand in a date."""
        return word in self.months or word in self.dates


@cache
def _entries() -> dict[str, _Entry]:
    data = files(__package__).joinpath("fact_rules.json").read_bytes()
    return msgspec.json.decode(data, type=dict[str, _Entry])


@cache
def _months() -> dict[str, str]:
    return msgspec.json.decode(files(__package__).joinpath("months.json").read_bytes(), type=dict[str, str])


def languages_with_rules() -> tuple[str, ...]:
    """The primary subtags of the languages that have rules, sorted."""
    return tuple(sorted(_entries()))


def rules_of(language: str | None) -> Rules | None:
    """The rules of a language by its tag (`zh-Hant`, `sr-Latn`, `pt-BR`); None where there are none."""
    return _rules(language.partition("-")[0].lower()) if language else None


@cache
def _rules(base: str) -> Rules | None:
    entry = _entries().get(base)
    if entry is None:
        return None
    return Rules(
        perhaps=frozenset(entry.perhaps.split()),
        always=frozenset(entry.always.split()),
        verbs=frozenset(entry.verbs.split()),
        pronouns=frozenset(entry.pronouns.split()),
        before=frozenset(entry.before.split()),
        of=frozenset(entry.of.split()),
        after=frozenset(entry.after.split()),
        months=frozenset(_months().get(base, "").split()),
        dates=frozenset(entry.dates.casefold().split()),
        topics=frozenset(entry.topics.split()),
        topic_endings=tuple(entry.topic_endings.split()),
        names=entry.names,
        spaces=entry.spaces,
        commas=",，،" if base in _ENUMERATING else ",，،、",
        short=entry.short,
    )
