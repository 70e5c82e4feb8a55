"""The summary of a set: pages, facts, pairs by type, words, cost, and the diversity of people (HalluVerse25, 4.1)."""

from __future__ import annotations

from collections import Counter, defaultdict
from math import exp, log
from statistics import median
from typing import TYPE_CHECKING

import msgspec

from veriglot.datasets.generation import UsageFields, ranked
from veriglot.datasets.halluverse.facts import facts_path
from veriglot.datasets.halluverse.pairs import read_facts
from veriglot.datasets.silver.job import TypeAccount, load_account
from veriglot.records import Sample
from veriglot.storage.checkpoint import Usage, failed_rows
from veriglot.storage.files import write_json
from veriglot.text.segmentation import words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from veriglot.datasets.halluverse.facts import PageFacts
    from veriglot.datasets.silver.job import LanguageAccount
    from veriglot.wikipedia.wikidata import Person

__all__ = ["Births", "Diversity", "LanguageSummary", "Spread", "Summary", "samples_of", "summary_of"]


class _Category(msgspec.Struct, frozen=True):
    """One category."""

    item: str
    label: str
    people: int
    weight: float


class Spread(msgspec.Struct, frozen=True):
    """People over categories.

    Attributes:
        people: all of them.
        known: those of whom any category is known.
        categories: those that anybody has, the heaviest first.
        entropy: Shannon's, in nats, of the weights; 0 where nothing is known.
        evenness: Pielou's, 0 to 1: the entropy over that of as many equal categories; None for fewer than two.
        effective: the number of equal categories of the same entropy (Hill's number of order 1); 0 for none.
        largest: the share of the weights, 0 to 1, that the heaviest category has (Berger and Parker); None for none.
    """

    people: int
    known: int
    categories: tuple[_Category, ...]
    entropy: float
    evenness: float | None
    effective: float
    largest: float | None

    @property
    def coverage(self) -> float | None:
        """The share of the people of whom any category is known; None for nobody."""
        return self.known / self.people if self.people else None


def spread_of(people: Iterable[Sequence[str]], labels: Mapping[str, str]) -> Spread:
    """How people are spread."""
    listed = [dict.fromkeys(items) for items in people]
    counts = Counter(item for own in listed for item in own)
    weights: dict[str, float] = defaultdict(float)
    for own in listed:
        for item in own:
            weights[item] += 1 / len(own)
    categories = [_Category(item, labels.get(item) or item, counts[item], weights[item]) for item in counts]
    categories.sort(key=lambda category: (-category.weight, -category.people, category.label, category.item))
    values = [category.weight for category in categories]
    entropy = _shannon(values)
    return Spread(
        len(listed),
        sum(map(bool, listed)),
        tuple(categories),
        entropy,
        _evenness(values),
        exp(entropy) if values else 0.0,
        max(values) / sum(values) if values else None,
    )


def _shannon(weights: Iterable[float]) -> float:
    """Shannon's entropy of weights that need not sum to 1, in nats; those that are 0 add nothing."""
    positive = [weight for weight in weights if weight > 0]
    total = sum(positive)
    return max(0.0, -sum(weight / total * log(weight / total) for weight in positive))


def _evenness(weights: Sequence[float]) -> float | None:
    """Pielou's evenness, 0 to 1: the entropy over that of as many equal weights; None for fewer than two weights."""
    return min(1.0, _shannon(weights) / log(len(weights))) if len(weights) > 1 else None


# Years of birth, as a histogram of equal spans.


_WIDTHS = (10, 20, 25, 50, 100, 200, 500, 1000)
_MOST_SPANS = 24


class _Years(msgspec.Struct, frozen=True):
    """A span of years with those born in it."""

    start: int
    years: int
    people: int


class Births(msgspec.Struct, frozen=True):
    """The years of birth of people.

    Attributes:
        people: all of them.
        known: those whose year is known.
        earliest, latest, median: of the years; None where none is known.
        spans: of equal width, from the earliest to the latest, those without anybody included.
        evenness: Pielou's, over these spans; None for fewer than two.
    """

    people: int
    known: int = 0
    earliest: int | None = None
    latest: int | None = None
    median: float | None = None
    spans: tuple[_Years, ...] = ()
    evenness: float | None = None

    @property
    def coverage(self) -> float | None:
        """The share of the people whose year is known; None for nobody."""
        return self.known / self.people if self.people else None


def births_of(years: Iterable[int | None], *, within: tuple[int, int] | None = None) -> Births:
    """The years of birth of people."""
    given = list(years)
    known = sorted(year for year in given if year is not None)
    if not known:
        return Births(len(given))
    low, high = within or (known[0], known[-1])
    low, high = min(low, known[0]), max(high, known[-1])
    width = next((w for w in _WIDTHS if high // w - low // w < _MOST_SPANS), _WIDTHS[-1])
    spans = tuple(
        _Years(index * width, width, sum(year // width == index for year in known))
        for index in range(low // width, high // width + 1)
    )
    return Births(
        len(given), len(known), known[0], known[-1], median(known), spans, _evenness([span.people for span in spans])
    )


# The diversity of people by what HalluVerse25 has of its own (4.1): occupation, citizenship, year of birth.


class Diversity(msgspec.Struct, frozen=True):
    """How diverse some people are.

    Attributes:
        people: how many.
        professions: by P106.
        countries: by P27, those that are no more included.
        births: by P569.
    """

    people: int
    professions: Spread
    countries: Spread
    births: Births


def diversity_of(people: Iterable[Person], *, within: tuple[int, int] | None = None) -> Diversity:
    """How diverse people are; see `births_of` for `within`."""
    given = list(people)
    labels = {thing.item: thing.label for person in given for thing in (*person.occupations, *person.citizenships)}
    return Diversity(
        len(given),
        spread_of(([thing.item for thing in person.occupations] for person in given), labels),
        spread_of(([thing.item for thing in person.citizenships] for person in given), labels),
        births_of((person.born for person in given), within=within),
    )


_EXAMPLES = 2  # pairs of each type and language


class Example(msgspec.Struct, frozen=True):
    """A pair to look at."""

    id: str
    language: str
    type: str
    original: str
    edited: str


class LanguageSummary(UsageFields, frozen=True):
    """One language, and what it cost (in the total also what failed, which is in no language).

    Attributes:
        pages: that were given.
        unfit: those of them that no facts were chosen from, by reason.
        asked: facts that were wanted.
        facts: facts that were taken.
        inexact: those of them that were not chosen in the page's own words; the page's sentence stands for them.
        fact_reasons: sentences that were chosen and not taken, and those that never came, by reason.
        fact_failures: pages whose calls gave nothing, and those that could not be read (in the total alone).
        pairs: in the set.
        types: by type; `reasons` are of the injection's check.
        sentence_reasons: sentences that got no error since something spoke against them, by reason.
        pair_failures: sentences whose calls gave nothing (in the total alone).
        balance: Pielou's evenness of the pairs over the types, 0 to 1; None without pairs.
        people: about whom there are pairs.
        words_original, words_edited: of all pairs, in our segmentation (HalluVerse25, Table 2, in tokens of its own).
    """

    pages: int
    unfit: dict[str, int]
    asked: int
    facts: int
    inexact: int
    fact_reasons: dict[str, int]
    fact_failures: int
    pairs: int
    types: dict[str, TypeAccount]
    sentence_reasons: dict[str, int]
    pair_failures: int
    balance: float | None
    people: int
    words_original: int
    words_edited: int


class Summary(msgspec.Struct, frozen=True):
    """All of a set.

    Attributes:
        languages: by BCP 47 tag, sorted.
        total: all of them.
        given: the people that were given; None where nobody was.
        set: those about whom there are pairs.
        by_language: the same in each language.
        unknown: groups of pairs about nobody who is known.
        examples: some pairs.
    """

    languages: dict[str, LanguageSummary]
    total: LanguageSummary
    given: Diversity | None
    set: Diversity
    by_language: dict[str, Diversity]
    unknown: int
    examples: tuple[Example, ...]


def samples_of(output: Path) -> Iterator[Sample]:
    """The pairs of a finished set, as `veriglot.read` gives them."""
    decoder = msgspec.json.Decoder(Sample)
    with output.open("rb") as lines:
        yield from map(decoder.decode, lines)


def summary_of(output: Path, people: Mapping[str, Person] | None, *, fact_failures: int = 0) -> Summary:
    """Sum up a finished set, and write the summary beside it.

    Args:
        output: the pairs, with their account and facts beside them.
        people: those that were given, by item.
        fact_failures: pages that failed in the first step.
    """
    account, rows = load_account(output), read_facts(facts_path(output))
    counts: dict[str, _Counts] = {tag: _Counts() for tag in sorted({row.language for row in rows})}
    everything = _Counts()
    examples: list[Example] = []
    for sample in samples_of(output):
        tag, type_ = sample.language or "", (sample.annotations[0].units or ())[0].label
        for sums in (counts[tag], everything):
            sums.add(sample)
        if counts[tag].types[type_] <= _EXAMPLES:
            examples.append(Example(sample.id, tag, type_, sample.evidence[0].text, sample.response))
    languages = {
        tag: _language([row for row in rows if row.language == tag], account.languages.get(tag), language_counts)
        for tag, language_counts in counts.items()
    }
    total = _language(rows, account.total, everything, fact_failures, account.failed)
    spent = total.usage + failed_rows(facts_path(output))[1]
    total = msgspec.structs.replace(total, **msgspec.structs.asdict(spent))
    known = people or {}
    born = [person.born for person in known.values() if person.born is not None]
    within = (min(born), max(born)) if born else None

    def diversity(groups: Iterable[str]) -> Diversity:
        return diversity_of((known[group] for group in groups if group in known), within=within)

    made = Summary(
        languages,
        total,
        diversity(known) if people is not None else None,
        diversity(everything.groups),
        {tag: diversity(language_counts.groups) for tag, language_counts in counts.items()},
        sum(group not in known for group in everything.groups),
        tuple(sorted(examples, key=lambda example: (example.language, example.type, example.id))),
    )
    write_json(output.with_name(output.name + ".summary.json"), made, indent=2)
    return made


class _Counts:
    """Counts over the pairs of a language, or of all."""

    def __init__(self) -> None:
        self.types: Counter[str] = Counter()
        self.groups: dict[str, None] = {}
        self.original = self.edited = 0

    def add(self, sample: Sample) -> None:
        self.types[(sample.annotations[0].units or ())[0].label] += 1
        self.groups[sample.meta["group"]] = None
        self.original += len(words(sample.evidence[0].text, sample.language))
        self.edited += len(words(sample.response, sample.language))


def _language(
    rows: list[PageFacts], account: LanguageAccount | None, counts: _Counts, fact_failures: int = 0, failed: int = 0
) -> LanguageSummary:
    types = account.types if account is not None else {}
    parts = [row.usage for row in rows] + ([account.usage] if account is not None else [])
    taken = [totals.taken for totals in types.values()]
    return LanguageSummary(
        len(rows),
        ranked(Counter(row.unfit for row in rows if row.unfit is not None)),
        sum(row.asked for row in rows),
        sum(len(row.facts) for row in rows),
        sum(not fact.exact for row in rows for fact in row.facts),
        ranked(Counter(rejection.reason for row in rows for rejection in row.rejections)),
        fact_failures,
        account.rows if account is not None else 0,
        types,
        account.passages.reasons if account is not None else {},
        failed,
        _evenness(taken) if sum(taken) else None,
        len(counts.groups),
        counts.original,
        counts.edited,
        **msgspec.structs.asdict(sum(parts, Usage())),
    )
