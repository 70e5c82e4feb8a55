"""Pairs of a fact and its edited version, with balanced types of errors, and the summary of a data set."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import partial
from itertools import groupby
from math import exp, log
from operator import attrgetter
from random import Random
from statistics import median
from typing import TYPE_CHECKING, Unpack

import msgspec
from msgspec.structs import asdict, replace

from veriglot.datasets.generation import RunOptions, UsageFields, generate, ranked, run_conversations
from veriglot.datasets.halluverse.facts import CHOICE_VERSION, FactSettings, Page, PageFacts, PageText, facts_path
from veriglot.datasets.prompts import prompt_version
from veriglot.datasets.quality import refusals_version
from veriglot.datasets.rules.material import PHRASES_VERSION, Article, Material
from veriglot.datasets.rules.silver import RULES_VERSION, Edit, Quotation
from veriglot.datasets.silver.check import Change, Edited
from veriglot.datasets.silver.injection import Injector
from veriglot.datasets.silver.injection import Task as SeedTask
from veriglot.datasets.silver.job import (
    CHECK_VERSION,
    LanguageAccount,
    SeedResult,
    SilverCounts,
    SilverJob,
    SilverRejection,
    Support,
    TypeAccount,
    load_account,
)
from veriglot.errors import InputError, UsageError
from veriglot.records import Annotation, Evidence, Generator, Kind, Sample, Task, Unit
from veriglot.records.settings import Record
from veriglot.records.taxonomy import taxonomy
from veriglot.storage.checkpoint import FailedRow, JsonLines, Tally, failed_rows
from veriglot.storage.files import beside, write_json
from veriglot.text.segmentation import sentences, words

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from veriglot.llm.client import Client
    from veriglot.wikipedia.wikidata import Person

    _Maker = Callable[[Iterable[tuple[Sample, str]]], Iterable[SeedResult | FailedRow]]

__all__ = [
    "TYPES",
    "Births",
    "Diversity",
    "LanguageSummary",
    "RuledSet",
    "Spread",
    "Summary",
    "inject_pairs",
    "read_facts",
    "samples_of",
    "seeds_of",
    "summary_of",
]

TYPES = tuple(taxonomy("halluverse").types)


# The type of error of each sentence: random, with equal numbers of accepted errors for each type.
#
# HalluVerse25 drew each sentence's type independently (3.2) and kept what annotators accepted, which left far fewer
# sentence errors than entity errors. Here the types are drawn in blocks: the number of each type in a block depends on
# the accepted errors so far and on the acceptance rate of the type; which sentence gets which type is random.


_LARGEST = 24
_PART = 4  # of the rest: blocks shrink towards the end, so that the last sentences balance the types
_MOST = 2 / 3  # maximum share of one type in a block, so that a type that is never accepted does not fill it


def block_sizes(total: int) -> Iterator[int]:
    """The sizes of the blocks for `total` sentences; the last ones are single sentences."""
    while total > 0:
        size = min(_LARGEST, max(1, total // _PART))
        yield size
        total -= size


def assign_types(deck: Sequence[str], able: Sequence[Collection[str]]) -> list[str]:
    """The types of a deck in an order that gives as many sentences as possible a type that is possible for them."""
    chosen: dict[int, str] = {}
    rest = []
    for type_ in sorted(deck, key=lambda drawn: sum(drawn in types for types in able)):  # rarest first
        free = [index for index, types in enumerate(able) if index not in chosen and type_ in types]
        if free:
            chosen[min(free, key=lambda index: len(able[index]))] = type_
        else:
            rest.append(type_)
    return [chosen[index] if index in chosen else rest.pop() for index in range(len(deck))]


class BalancedDraw:
    """Draws the types of one language."""

    def __init__(self, types: Sequence[str], key: str) -> None:
        self._types = tuple(types)
        self._key = key
        self._asked = Counter[str]()
        self._taken = Counter[str]()
        self._block = 0

    def block(self, size: int) -> list[str]:
        """The types of the next sentences."""
        rng = Random(f"{self._key} {self._block}")  # noqa: S311  a seeded draw, not a secret
        self._block += 1
        most = max(1, round(_MOST * size))
        expected = {type_: float(self._taken[type_]) for type_ in self._types}
        drawn = Counter[str]()
        for _ in range(size):
            free = [type_ for type_ in self._types if drawn[type_] < most] or list(self._types)
            fewest = min(expected[type_] for type_ in free)
            type_ = rng.choice([type_ for type_ in free if expected[type_] == fewest])
            drawn[type_] += 1
            # acceptance rate, with a prior near 1
            expected[type_] += (self._taken[type_] + 3) / (self._asked[type_] + 3)
        deck = [type_ for type_ in self._types for _ in range(drawn[type_])]
        rng.shuffle(deck)
        return deck

    def note(self, type_: str, *, taken: bool) -> None:
        """Record whether an error of a type was accepted."""
        self._asked[type_] += 1
        self._taken[type_] += taken


# A seed is a sample: the factual sentence as response, its page as evidence, so that true statements are no errors.


def read_facts(path: Path) -> list[PageFacts]:
    """The pages of a finished first step, with their facts."""
    return [msgspec.json.decode(line, type=PageFacts) for line in path.read_bytes().splitlines()]


def seeds_of(facts: Iterable[PageFacts], pages: Mapping[str, Page]) -> list[Sample]:
    """The sentences, language by language, in the order of their pages.

    Args:
        facts: the chosen sentences.
        pages: their pages, by id.
    """
    seeds = []
    for row in facts:
        page, reference = pages[row.id], pages[row.id].reference
        meta = {"group": page.group, "page": page.id}
        if reference.meta.get("revision") is not None:
            meta["revision"] = reference.meta["revision"]
        of_page = Sample("", "", Task.BIOGRAPHY, reference.language, evidence=(reference.evidence,), meta=meta)
        seeds += [replace(of_page, id=fact.id, response=fact.text) for fact in row.facts]
    return sorted(seeds, key=attrgetter("language"))


def _make_pairs(
    output: Path,
    seeds: Sequence[Sample],
    make: _Maker,
    types: Sequence[str],
    *,
    signature: str,
    settings: Mapping[str, object],
    able: Callable[[Sample], Collection[str]] | None = None,
    seed: int | None,
    maker: str = "client",
    **run: Unpack[RunOptions],
) -> Tally:
    """Make a pair of every sentence with `make`, one result each; `able` gives the possible types for a sentence."""
    finished = JsonLines(beside(output, ".rows.jsonl"))

    def work(rows: Iterator[Sample]) -> Iterator[SeedResult | FailedRow]:
        todo = {row.id for row in rows}
        done = {
            result.id: bool(result.samples) for result in map(msgspec.json.Decoder(SeedResult).decode, finished.lines())
        }
        for tag, group in groupby(seeds, key=attrgetter("language")):
            rest = list(group)
            draw = BalancedDraw(types, f"halluverse {seed} {tag}")
            for size in block_sizes(len(rest)):
                block, rest = rest[:size], rest[size:]
                deck = draw.block(size)
                deck = deck if able is None else assign_types(deck, [able(row) for row in block])
                drawn = list(zip(block, deck, strict=True))
                outcomes = dict(done)  # results of an earlier call in this block count for the next blocks
                missing = [pair for pair in drawn if pair[0].id in todo]
                for (row, _), result in zip(missing, make(missing), strict=True):
                    pair = _settled(result, row)
                    if isinstance(pair, SeedResult):
                        outcomes[pair.id] = bool(pair.samples)
                    yield pair
                for row, type_ in drawn:
                    if row.id in outcomes:
                        draw.note(type_, taken=outcomes[row.id])

    return generate(
        output,
        seeds,
        work,
        record_type=SeedResult,
        counts=lambda: SilverCounts(types),
        signature=signature,
        settings={"seed": seed, "check": f"check@{CHECK_VERSION}", "types": ",".join(types), **settings},
        maker=maker,
        **run,
    )


def _settled(result: SeedResult | FailedRow, seed: Sample) -> SeedResult | FailedRow:
    """The result of a maker as a pair: with the sentence's id, and with the sentence as evidence instead of the page.

    An error that added a sentence is not a type of HalluVerse25: it is rejected as `outside`.
    """
    if isinstance(result, FailedRow):
        return result
    tag = seed.language or ""
    rejections = [replace(rejection, id=seed.id) for rejection in result.rejections]
    samples, taken = result.samples, result.taken
    long = next((sample for sample in samples if len(sentences(sample.response, tag)) > 1), None)
    if long is not None:
        type_ = _type_of(long)
        detail = "the edit is more than one sentence"
        rejections.append(SilverRejection(seed.id, seed.id, tag, type_, "outside", detail, text=long.response))
        samples, taken = (), {**taken, type_: 0}
    page = seed.evidence[0]
    evidence = (Evidence(seed.response, title=page.title, language=tag, url=page.url),)
    samples = tuple(replace(sample, id=seed.id, evidence=evidence) for sample in samples)
    return replace(result, samples=samples, rejections=tuple(rejections), taken=taken)


def _type_of(pair: Sample) -> str:
    return (pair.annotations[0].units or ())[0].label


def inject_pairs(
    output: Path,
    seeds: Sequence[Sample],
    injector: Injector,
    client: Client,
    *,
    support: Support | None = None,
    jobs: int = 8,
    **run: Unpack[RunOptions],
) -> Tally:
    """Let a model insert an error into every sentence.

    Args:
        output: JSON lines of samples: the edited sentence as response, the factual one as evidence. Rejections go to
            `rejected_path(output)`, the account to `account_path(output)`.
        seeds: language by language, as `seeds_of` returns them; the same ones at each call.
        injector: of the taxonomy `halluverse`, in the form `plain`.
        client: for all calls, including those of a check by a model.
        support: checks that the page supports the sentence and not the error; None skips it, with a note in each row.
        jobs: calls at the same time.
        run: see `RunOptions`.

    Returns:
        Counts of the sentences. A sentence without an accepted error is done; one whose calls failed is a failed row.

    Raises:
        UsageError: another taxonomy or form, or the output was begun with other settings.
        ModelError: an error that every further call would have too.
    """
    if injector.taxonomy != "halluverse" or injector.form != "plain":
        raise UsageError("Pairs have one error of halluverse's types, read from the edited sentence.")

    def make(drawn: Iterable[tuple[Sample, str]]) -> Iterator[SeedResult | FailedRow]:
        tasks = [SeedTask(seed.id, seed, (type_,)) for seed, type_ in drawn]
        return run_conversations(client, tasks, lambda task: SilverJob(injector, task, support).run(), jobs=jobs)

    return _make_pairs(
        output,
        seeds,
        make,
        injector.all_types,
        signature=client.signature,
        seed=injector.seed,
        settings={
            **injector.described,
            "attempts": injector.attempts,
            "prompt": f"{prompt_version('injection')},{refusals_version()}",
            "support": support.signature if support is not None else None,
        },
        **run,
    )


# Facts and pairs by rule, without a model: sentences with names, numbers and dates, and errors as in `silver --rules`.
#
# An error of the type `sentence` is a statement about another person with this person's name, or the negation of the
# sentence; both replace the whole sentence, as in HalluVerse25.


_PAIR_RULES_VERSION = "1"
_ATTEMPTS = 12
_PLACELESS = 3  # attempts without a place for an error, after which there are no more
_OTHERS = 30  # pages that are searched for a statement about another person
_NEGATED = 0.3  # share of sentence errors that are negations, if the language's negation is known


class RuledSet:
    """Pages with the data that rules need; all pages are in memory.

    Args:
        pages: usable ones are stored, by language.
        settings: which pages are usable, and how many facts are taken of each.
        seed: for all random draws.
    """

    def __init__(self, pages: Iterable[Page], settings: FactSettings, seed: int) -> None:
        self._settings = settings
        self._seed = seed
        self._pages = defaultdict[str, list[Page]](list)
        self._numbers: dict[str, int] = {}
        for page in pages:
            if settings.unfit(page) is None:
                self._numbers[page.id] = len(self._pages[page.language])
                self._pages[page.language].append(page)
        self._materials: dict[str, Material] = {}

    def choose(self, output: Path, pages: Iterable[Page | FailedRow], **run: Unpack[RunOptions]) -> Tally:
        """The first step by rule; see `choose_facts`. A page may have no sentences with facts."""
        return generate(
            output,
            pages,
            lambda rows: map(self._facts, rows),
            signature=f"choice@{CHOICE_VERSION},rules@{RULES_VERSION}",
            settings={"seed": self._seed, "facts": self._settings},
            maker="rules",
            **run,
        )

    def pairs(
        self, output: Path, seeds: Sequence[Sample], *, types: Sequence[str] = TYPES, **run: Unpack[RunOptions]
    ) -> Tally:
        """The second step by rule; see `inject_pairs`.

        Raises:
            InputError: there are no sentences.
        """
        if not seeds:
            raise InputError("No page gave a factual sentence.", "Lower min_sentences or set any_subject.")
        tried: dict[tuple[str, str], SeedResult] = {}

        def pair(seed: Sample, type_: str) -> SeedResult:
            key = (seed.id, type_)
            if key not in tried:
                tried[key] = self._pair(seed, type_)
            return tried[key]

        def make(drawn: Iterable[tuple[Sample, str]]) -> Iterator[SeedResult]:
            yield from [pair(seed, type_) for seed, type_ in drawn]
            tried.clear()  # of this block; the next one has other sentences

        return _make_pairs(
            output,
            seeds,
            make,
            types,
            signature=f"pairs@{_PAIR_RULES_VERSION},rules@{RULES_VERSION},{PHRASES_VERSION}",
            settings={},
            able=lambda seed: [type_ for type_ in types if pair(seed, type_).samples],
            seed=self._seed,
            maker="rules",
            **run,
        )

    def _quotation(self, tag: str, page: str, listed: list[str]) -> Quotation:
        """Sentences of a page together with the other pages of its language."""
        if tag not in self._materials:
            articles = [Article(own.id, tag, (own.reference.evidence,), Task.BIOGRAPHY) for own in self._pages[tag]]
            self._materials[tag] = Material(tag, articles)
        return Quotation(self._materials[tag], self._numbers[page], listed)

    def _facts(self, page: Page) -> PageFacts:
        unfit = self._settings.unfit(page)
        if unfit is not None:
            return unfit
        whole = self._quotation(page.language, page.id, [])
        listed = set(whole.article.sentences)
        text = PageText(page, named=self._settings.named)
        for sentence in self._rng("facts", page.id).sample(text.sentences, len(text.sentences)):
            if len(text.facts) == self._settings.count:
                break
            if sentence in listed and whole.values(sentence):
                text.take(sentence)
        return text.chosen(self._settings.count)

    def _pair(self, seed: Sample, type_: str) -> SeedResult:
        """One sentence with an error of a type, or the rejected attempts."""
        tag = seed.language or ""
        rejections = []
        samples: tuple[Sample, ...] = ()
        for attempt in range(1, _ATTEMPTS + 1):
            rng = self._rng("pair", seed.id, type_, attempt)
            quotation = self._quotation(tag, seed.meta["page"], [seed.response])
            reject = partial(SilverRejection, seed.id, seed.id, tag, type_, attempt=attempt)
            edit = _sentence_error(quotation, rng) if type_ == "sentence" else quotation.error(type_, rng)
            if edit is None:
                rejections.append(reject("no_place", "no change of this kind is possible in it"))
                if sum(fault.reason == "no_place" for fault in rejections) == _PLACELESS:
                    break
                continue
            quotation.edits.append((edit, type_))
            edited = quotation.applied()
            if type_ == "sentence":
                edited = Edited.of(edited.original, [(Change(0, 0, 0, len(edited.original), type_), edited.text)])
            faults = quotation.violations(edited, (type_,))
            rejections += [
                reject(fault.reason, fault.detail, text=edited.text[fault.start : fault.end]) for fault in faults
            ]
            if not faults:
                samples = (self._sample(seed, quotation, edited),)
                break
        taken = {"passage": 1, type_: len(samples)}
        return SeedResult(seed.id, tag, samples, tuple(rejections), {"passage": 1, type_: 1}, taken)

    def _sample(self, seed: Sample, quotation: Quotation, edited: Edited) -> Sample:
        version = f"pairs@{_PAIR_RULES_VERSION},rules@{RULES_VERSION}"
        silver = {"seed": seed.id, "given": True, **quotation.silver_meta(edited, version)}
        units = (Unit(0, len(edited.text), edited.changes[0].type),)
        return replace(
            seed,
            response=edited.text,
            generator=Generator("rules", _PAIR_RULES_VERSION, self._seed),
            annotations=(Annotation("silver", Kind.MODEL, "halluverse", spans=edited.spans, units=units),),
            meta={**seed.meta, "silver": silver},
        )

    def _rng(self, *parts: object) -> Random:
        return Random(" ".join(map(str, (*parts, self._seed))))  # noqa: S311  a seeded draw, not a secret


def _sentence_error(quotation: Quotation, rng: Random) -> Edit | None:
    """The negation, or another page's statement about its person, with this person's name."""
    negated = quotation.error("contradictory", rng) if rng.random() < _NEGATED else None
    if negated is not None:
        return negated
    material, text = quotation.material, quotation.text
    names = _forms(quotation.article)
    subject = next((name for name in names if text.startswith(name)), names[0] if names else "")
    for _ in range(_OTHERS if len(material.articles) > 1 else 0):
        other = rng.randrange(len(material.articles))
        if other == quotation.number:
            continue
        for title in _forms(material.articles[other]):
            after = len(title)
            candidates = [
                sentence
                for sentence in material.articles[other].sentences
                if sentence.startswith(title) and not sentence[after : after + 1].isalnum()
            ]
            if candidates:
                return Edit(0, len(text), subject + rng.choice(candidates)[after:], "of another")
    return None


def _forms(article: Article) -> list[str]:
    """Names at the beginning of sentences about a person: the title without brackets, or its last word."""
    title = article.title
    return list(dict.fromkeys(form for form in (title, title.rpartition(" ")[2]) if form))


# The summary of a data set: pages, facts, pairs by type, words, cost, and diversity of people (HalluVerse25, 4.1).


class _Category(Record):
    """One category."""

    item: str
    label: str
    people: int
    weight: float


class Spread(Record):
    """Distribution of people over categories.

    Attributes:
        people: number of people.
        known: those with a known category.
        categories: those with at least one person, the largest weight first.
        entropy: Shannon entropy of the weights, in nats; 0 if nothing is known.
        evenness: Pielou's, 0 to 1: the entropy divided by that of as many equal categories; None for fewer than two.
        effective: the number of equal categories with the same entropy (Hill's number of order 1); 0 for none.
        largest: the weight share, 0 to 1, of the largest category (Berger and Parker); None for none.
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
        """The share of people with a known category; None without people."""
        return self.known / self.people if self.people else None


def spread_of(people: Iterable[Sequence[str]], labels: Mapping[str, str]) -> Spread:
    """The distribution of people over categories."""
    listed = [dict.fromkeys(items) for items in people]
    counts = Counter(item for own in listed for item in own)
    weights = defaultdict[str, float](float)
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
    """Shannon entropy of weights with any sum, in nats; a weight of 0 adds nothing."""
    positive = [weight for weight in weights if weight > 0]
    total = sum(positive)
    return max(0.0, -sum(weight / total * log(weight / total) for weight in positive))


def _evenness(weights: Sequence[float]) -> float | None:
    """Pielou's evenness, 0 to 1: the entropy divided by that of as many equal weights; None for fewer than two."""
    return min(1.0, _shannon(weights) / log(len(weights))) if len(weights) > 1 else None


# Years of birth, as a histogram of equal spans.


_WIDTHS = (10, 20, 25, 50, 100, 200, 500, 1000)
_MOST_SPANS = 24


class _Years(Record):
    """A span of years with the number of people born in it."""

    start: int
    years: int
    people: int


class Births(Record):
    """The years of birth of people.

    Attributes:
        people: number of people.
        known: those with a known year.
        earliest, latest, median: of the years; None if no year is known.
        spans: of equal width, from the earliest to the latest, including empty ones.
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
        """The share of people with a known year; None without people."""
        return self.known / self.people if self.people else None


def births_of(years: Iterable[int | None], *, within: Sequence[int] = ()) -> Births:
    """The years of birth of people; the spans also cover the years in `within`."""
    given = list(years)
    known = sorted(year for year in given if year is not None)
    if not known:
        return Births(len(given))
    low, high = min(known + list(within)), max(known + list(within))
    width = next((w for w in _WIDTHS if high // w - low // w < _MOST_SPANS), _WIDTHS[-1])
    spans = tuple(
        _Years(index * width, width, sum(year // width == index for year in known))
        for index in range(low // width, high // width + 1)
    )
    return Births(
        len(given), len(known), known[0], known[-1], median(known), spans, _evenness([span.people for span in spans])
    )


# Diversity of people by the attributes in HalluVerse25 (4.1): occupation, citizenship, year of birth.


class Diversity(Record):
    """Diversity of people.

    Attributes:
        people: number of people.
        professions: by P106.
        countries: by P27, including former countries.
        births: by P569.
    """

    people: int
    professions: Spread
    countries: Spread
    births: Births


def diversity_of(given: Sequence[Person], *, within: Sequence[int] = ()) -> Diversity:
    """The diversity of people; for `within` see `births_of`."""
    labels = {entity.item: entity.label for person in given for entity in (*person.occupations, *person.citizenships)}
    return Diversity(
        len(given),
        spread_of(([entity.item for entity in person.occupations] for person in given), labels),
        spread_of(([entity.item for entity in person.citizenships] for person in given), labels),
        births_of((person.born for person in given), within=within),
    )


_EXAMPLES = 2  # pairs of each type and language


class Example(Record):
    """An example of a pair."""

    id: str
    language: str
    type: str
    original: str
    edited: str


class LanguageSummary(UsageFields):
    """One language with its cost (the total includes failed rows, which are in no language).

    Attributes:
        pages: number of given pages.
        unfit: pages that were not used for facts, by reason.
        asked: requested facts.
        facts: accepted facts.
        inexact: accepted facts that were not literal; the page's sentence replaces them.
        fact_reasons: rejected and missing sentences, by reason.
        fact_failures: pages whose calls failed, and those that could not be read (only in the total).
        pairs: in the data set.
        types: by type; `reasons` are of the injection's check.
        sentence_reasons: sentences that were rejected before an error was inserted, by reason.
        pair_failures: sentences whose calls failed (only in the total).
        balance: Pielou's evenness of the pairs over the types, 0 to 1; None without pairs.
        people: people with pairs.
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


class Summary(Record):
    """Summary of a data set.

    Attributes:
        languages: by BCP 47 tag, sorted.
        total: all of them.
        given: diversity of the given people; None if there were none.
        set: of the people with pairs.
        by_language: the same in each language.
        unknown: groups of pairs about unknown people.
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
    """The pairs of a finished data set, as `veriglot.read` returns them."""
    decoder = msgspec.json.Decoder(Sample)
    with output.open("rb") as lines:
        yield from map(decoder.decode, lines)


def summary_of(output: Path, people: Mapping[str, Person] | None, *, fact_failures: int) -> Summary:
    """Summarise a finished data set, and write the summary beside it.

    Args:
        output: the pairs, with their account and facts beside them.
        people: the given people, by item.
        fact_failures: number of pages that failed in the first step.
    """
    account, rows = load_account(output), read_facts(facts_path(output))
    counts = {tag: _Counts() for tag in sorted({row.language for row in rows})}
    everything = _Counts()
    examples = []
    for sample in samples_of(output):
        tag, type_ = sample.language or "", _type_of(sample)
        for sums in (counts[tag], everything):
            sums.add(sample)
        if counts[tag].types[type_] <= _EXAMPLES:
            examples.append(Example(sample.id, tag, type_, sample.evidence[0].text, sample.response))
    nothing = SilverCounts(()).account()  # for a language without sentences
    languages = {
        tag: _language(
            [row for row in rows if row.language == tag], account.languages.get(tag, nothing), language_counts
        )
        for tag, language_counts in counts.items()
    }
    total = _language(rows, account.total, everything, fact_failures, account.failed)
    total = replace(total, **asdict(total.usage + failed_rows(facts_path(output))[1]))
    known = people or {}
    born = [person.born for person in known.values() if person.born is not None]

    def diversity(groups: Iterable[str]) -> Diversity:
        return diversity_of([known[group] for group in groups if group in known], within=born)

    summary = Summary(
        languages,
        total,
        diversity(known) if people is not None else None,
        diversity(everything.groups),
        {tag: diversity(language_counts.groups) for tag, language_counts in counts.items()},
        sum(group not in known for group in everything.groups),
        tuple(sorted(examples, key=attrgetter("language", "type", "id"))),
    )
    write_json(beside(output, ".summary.json"), summary, indent=2)
    return summary


class _Counts:
    """Counts over the pairs of a language, or of all."""

    def __init__(self) -> None:
        self.types = Counter[str]()
        self.groups: dict[str, None] = {}
        self.original = self.edited = 0

    def add(self, sample: Sample) -> None:
        self.types[_type_of(sample)] += 1
        self.groups[sample.meta["group"]] = None
        self.original += len(words(sample.evidence[0].text, sample.language))
        self.edited += len(words(sample.response, sample.language))


def _language(
    rows: list[PageFacts], account: LanguageAccount, counts: _Counts, fact_failures: int = 0, failed: int = 0
) -> LanguageSummary:
    taken = [totals.taken for totals in account.types.values()]
    return LanguageSummary(
        len(rows),
        ranked(Counter(row.unfit for row in rows if row.unfit is not None)),
        sum(row.asked for row in rows),
        sum(len(row.facts) for row in rows),
        sum(not fact.exact for row in rows for fact in row.facts),
        ranked(Counter(rejection.reason for row in rows for rejection in row.rejections)),
        fact_failures,
        account.rows,
        account.types,
        account.passages.reasons,
        failed,
        _evenness(taken) if sum(taken) else None,
        len(counts.groups),
        counts.original,
        counts.edited,
        **asdict(sum((row.usage for row in rows), account.usage)),
    )
