"""Which rows are made: how many of each language, which of them are clean, and which errors the others get.

Everything is settled before the first row is made, so that shares come out as asked, and any row can be made alone.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import msgspec

from veriglot.build.perturbation.phrases import phrase_languages, phrases_of
from veriglot.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["RULE_TAXONOMIES", "Planned", "RuleSettings", "apportioned", "planned_rows", "supported_types"]

RULE_TAXONOMIES: dict[str, tuple[str, ...]] = {
    "fava": ("entity", "relation", "contradictory", "invented", "subjective", "unverifiable"),
    "halluverse": ("entity", "relation", "sentence"),
}
_NEED_PHRASES = frozenset({"contradictory", "subjective", "unverifiable"})


class RuleSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What silver data is made by rule.

    Attributes:
        rows: how many, over all languages; each gets as many as the others, or one more.
        taxonomy: `fava` or `halluverse`.
        shares: what part of all errors each type is; types that are not named get none, an empty mapping gives all the
            same. They need not sum to 1.
        clean: share of the rows without any error, 0 to 1.
        fewest, most: errors in a row that has any.
        reworded: share of the sentences that are quoted without what stands in brackets, where brackets do.
        articles: of a language, at the most; see `Articles`.
        seed: of every draw.
    """

    rows: int = 1000
    taxonomy: str = "fava"
    shares: dict[str, float] = {}
    clean: float = 0.3
    fewest: int = 1
    most: int = 3
    reworded: float = 0.4
    articles: int = 1000
    seed: int = 1

    def __post_init__(self) -> None:
        if self.taxonomy not in RULE_TAXONOMIES:
            raise UsageError(
                f"Rules make no errors of the taxonomy {self.taxonomy!r}.",
                remedy=f"Name one of {', '.join(RULE_TAXONOMIES)}.",
            )
        strange = sorted(set(self.shares) - set(RULE_TAXONOMIES[self.taxonomy]))
        if strange:
            types = ", ".join(RULE_TAXONOMIES[self.taxonomy])
            raise UsageError(f"The taxonomy {self.taxonomy} has no type {strange[0]!r}.", remedy=f"It has {types}.")
        if any(not 0 <= share < float("inf") for share in self.shares.values()) or (
            self.shares and not sum(self.shares.values())
        ):
            raise UsageError("The shares of types are numbers from 0 up, at least one of them more than 0.")
        if not (0 <= self.clean <= 1 and 0 <= self.reworded <= 1):
            raise UsageError("The shares of clean rows and of reworded sentences lie between 0 and 1.")
        if not 1 <= self.fewest <= self.most <= 6:
            raise UsageError("A row has 1 to 6 errors, the fewest no more than the most.")
        if self.rows < 1 or self.articles < 2:
            raise UsageError("There is at least one row to make, from at least two articles of a language.")

    def weights(self) -> dict[str, float]:
        """The share of each type of the taxonomy, in its order; they sum to 1."""
        given = self.shares or dict.fromkeys(RULE_TAXONOMIES[self.taxonomy], 1.0)
        total = sum(given.values())
        return {type_: given.get(type_, 0.0) / total for type_ in RULE_TAXONOMIES[self.taxonomy]}


class Planned(msgspec.Struct, frozen=True):
    """A row that is to be made.

    Attributes:
        id: of the sample that it becomes.
        language: BCP 47 tag.
        number: from 0, in its language.
        types: of the errors that it gets; empty for a clean row.
    """

    id: str
    language: str
    number: int
    types: tuple[str, ...]


def supported_types(language: str, taxonomy: str = "fava") -> tuple[str, ...]:
    """The types of errors that rules can make in a language; contradictory, subjective and unverifiable need its words.

    Args:
        language: BCP 47 tag.
        taxonomy: `fava` or `halluverse`.
    """
    known = phrases_of(language) is not None if phrase_languages() else False
    return tuple(type_ for type_ in RULE_TAXONOMIES[taxonomy] if known or type_ not in _NEED_PHRASES)


def planned_rows(languages: Sequence[str], settings: RuleSettings) -> Iterator[Planned]:
    """Every row, language by language; the same for equal arguments."""
    numbers = apportioned(dict.fromkeys(languages, 1.0), settings.rows)
    for tag in languages:
        yield from _of_language(tag, numbers[tag], settings)


def _of_language(tag: str, rows: int, settings: RuleSettings) -> Iterator[Planned]:
    rng = Random(f"plan {settings.seed} {tag}")  # noqa: S311  a seeded draw, not a secret
    can = supported_types(tag, settings.taxonomy)
    weights = {type_: weight for type_, weight in settings.weights().items() if type_ in can and weight}
    clean = set(rng.sample(range(rows), round(settings.clean * rows) if weights else rows))
    counts = [0 if row in clean else rng.randint(settings.fewest, settings.most) for row in range(rows)]
    deck = [type_ for type_, number in apportioned(weights, sum(counts)).items() for _ in range(number)]
    rng.shuffle(deck)
    for row, count in enumerate(counts):
        yield Planned(f"rules-{tag}-{row:05d}", tag, row, tuple(deck.pop() for _ in range(count)))


def apportioned(weights: Mapping[str, float], whole: int) -> dict[str, int]:
    """Whole numbers in proportion to weights that sum to `whole`, by largest remainders (the first of equal ones)."""
    total = sum(weights.values())
    exact = {name: whole * weight / total for name, weight in weights.items()} if total else {}
    found = {name: int(share) for name, share in exact.items()}
    left = sorted(exact, key=lambda name: found[name] - exact[name])
    for name in left[: whole - sum(found.values())]:
        found[name] += 1
    return found
