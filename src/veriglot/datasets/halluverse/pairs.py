"""Pairs of a fact and its edited version: types drawn so that what passes is even, errors by a model or by rule."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import groupby
from operator import attrgetter
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from veriglot.datasets.generation import as_json, generate, in_waves
from veriglot.datasets.halluverse.facts import CHOICE_VERSION, PageFacts, PageText, empty_page
from veriglot.datasets.quality import refusals_version
from veriglot.datasets.rules.material import Article, Material, phrases_version
from veriglot.datasets.rules.silver import (
    RULES_VERSION,
    Edit,
    Quotation,
    contradictory_error,
    entity_error,
    relation_error,
)
from veriglot.datasets.silver.check import Change, check, spans_of
from veriglot.datasets.silver.injection import Task as SeedTask
from veriglot.datasets.silver.injection import injection_types, injection_version
from veriglot.datasets.silver.job import CHECK_VERSION, PASSAGE, Made, SilverRejection, generate_silver, silver_rows
from veriglot.errors import InputError, UsageError
from veriglot.records import Annotation, Evidence, Generator, Kind, Sample, Task, Unit
from veriglot.storage.checkpoint import FailedRow, JsonLines
from veriglot.text.segmentation import sentences

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import Unpack

    from veriglot.datasets.generation import RunOptions
    from veriglot.datasets.halluverse.facts import FactSettings, Page
    from veriglot.datasets.silver.injection import Injector
    from veriglot.datasets.silver.job import Support
    from veriglot.llm.client import Client
    from veriglot.storage.checkpoint import Option, Tally

__all__ = ["TYPES", "RuledSet", "Seed", "inject_pairs", "read_facts", "seeds_of"]


# Which type of error a sentence gets: drawn at random, so that what is accepted comes out even.
#
# HalluVerse25 drew each sentence's type by itself (3.2) and kept what annotators let pass, which left far fewer
# sentence errors than entity errors. Here the types are drawn block by block: what passed so far, and how often each
# type passes, decides how many of each are in a block; chance decides which sentence gets which.


_LARGEST = 24
_PART = 4  # of what is left: blocks shrink towards the end, so that the last sentences even out the rest
_MOST = 2 / 3  # of a block: what never passes must not take all of it


def block_sizes(total: int) -> Iterator[int]:
    """The sizes of the blocks that so many sentences are dealt out in; the last ones are single sentences."""
    while total > 0:
        size = min(_LARGEST, max(1, total // _PART))
        yield size
        total -= size


def dealt(deck: Sequence[str], able: Sequence[Collection[str]]) -> list[str]:
    """The types of a deck, in an order that gives as many sentences as it can a type that they can have an error of."""
    chosen: dict[int, str] = {}
    rest: list[str] = []
    for type_ in sorted(deck, key=lambda drawn: sum(drawn in types for types in able)):  # the rarest gift first
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
        self._asked: Counter[str] = Counter()
        self._taken: Counter[str] = Counter()
        self._block = 0

    def block(self, size: int) -> list[str]:
        """The types of the next sentences."""
        rng = Random(f"{self._key} {self._block}")  # noqa: S311  a seeded draw, not a secret
        self._block += 1
        most = max(1, round(_MOST * size))
        expected = {type_: float(self._taken[type_]) for type_ in self._types}
        drawn: Counter[str] = Counter()
        for _ in range(size):
            free = [type_ for type_ in self._types if drawn[type_] < most] or list(self._types)
            least = min(expected[type_] for type_ in free)
            type_ = rng.choice([type_ for type_ in free if expected[type_] == least])
            drawn[type_] += 1
            expected[type_] += self._share(type_)
        deck = [type_ for type_ in self._types for _ in range(drawn[type_])]
        rng.shuffle(deck)
        return deck

    def note(self, type_: str, *, taken: bool) -> None:
        """Note whether an error of a type passed."""
        self._asked[type_] += 1
        self._taken[type_] += taken

    def _share(self, type_: str) -> float:
        """How often a type passes; before much is known, nearly always."""
        return (self._taken[type_] + 3) / (self._asked[type_] + 3)


if TYPE_CHECKING:
    _Maker = Callable[[Iterable[tuple["Seed", str]]], Iterable[Made | FailedRow]]


TYPES = injection_types("halluverse")


class Seed(msgspec.Struct, frozen=True):
    """A factual sentence that is to get an error.

    Attributes:
        id: the fact's, and that of the pair.
        sample: the sentence as response, its page as evidence, so that what the page says is no error.
    """

    id: str
    sample: Sample

    @property
    def language(self) -> str:
        """BCP 47 tag."""
        return self.sample.language or ""


def read_facts(path: Path) -> list[PageFacts]:
    """The pages of a finished first step, with their facts."""
    decoder = msgspec.json.Decoder(PageFacts)
    return [decoder.decode(line) for line in path.read_bytes().splitlines()]


def seeds_of(facts: Iterable[PageFacts], pages: Mapping[str, Page]) -> list[Seed]:
    """The sentences, language by language, in the order of their pages.

    Args:
        found: the facts.
        pages: the pages that they are from, by id.
    """
    seeds = [_seed(fact.id, fact.text, pages[row.id]) for row in facts for fact in row.facts]
    return sorted(seeds, key=attrgetter("language"))


def _seed(id_: str, text: str, page: Page) -> Seed:
    reference = page.reference
    meta: dict[str, Any] = {"group": page.group, "page": page.id}
    if page.reference.meta.get("revision") is not None:
        meta["revision"] = page.reference.meta["revision"]
    return Seed(
        id_,
        Sample(id_, text, task=Task.BIOGRAPHY, language=reference.language, evidence=(reference.evidence,), meta=meta),
    )


def _make_pairs(
    output: Path,
    seeds: Sequence[Seed],
    make: _Maker,
    *,
    signature: str,
    maker: str,
    types: Sequence[str] = TYPES,
    able: Callable[[Seed], Collection[str]] | None = None,
    seed: int | None = None,
    settings: Mapping[str, Option],
    **run: Unpack[RunOptions],
) -> Tally:
    """Make a pair of every sentence."""
    finished = output.with_name(output.name + ".rows.jsonl")

    def work(rows: Iterator[Seed]) -> Iterator[Made | FailedRow]:
        todo = {seed_.id for seed_ in rows}
        done = _outcomes(finished)
        for tag, group in groupby(seeds, key=attrgetter("language")):
            of_language = list(group)
            draw = BalancedDraw(types, f"halluverse {seed} {tag}")
            start = 0
            for size in block_sizes(len(of_language)):
                block = of_language[start : start + size]
                start += size
                deck = draw.block(size)
                deck = deck if able is None else dealt(deck, [able(seed_) for seed_ in block])
                yield from _block(list(zip(block, deck, strict=True)), todo, done, make, draw)

    return generate_silver(
        output,
        seeds,
        work,
        types,
        signature=signature,
        settings={"seed": seed, "check": f"check@{CHECK_VERSION}", "types": ",".join(types), **settings},
        maker=maker,
        **run,
    )


def _block(
    block: list[tuple[Seed, str]], todo: set[str], done: dict[str, bool], make: _Maker, draw: BalancedDraw
) -> Iterator[Made | FailedRow]:
    """What is missing of a block; whatever an earlier call did of it counts for the blocks that follow."""
    outcomes = dict(done)
    for made in make((seed, type_) for seed, type_ in block if seed.id in todo):
        if isinstance(made, Made):
            outcomes[made.id] = bool(made.samples)
        yield made
    for seed, type_ in block:
        if seed.id in outcomes:
            draw.note(type_, taken=outcomes[seed.id])


def _outcomes(rows: Path) -> dict[str, bool]:
    """Which sentences earlier calls are done with, and whether each became a pair."""
    if not rows.exists():
        return {}
    decoder = msgspec.json.Decoder(Made)
    return {made.id: bool(made.samples) for made in map(decoder.decode, JsonLines(rows).lines())}


def _longer(made: Made, sample: Sample, seed: Seed) -> Made:
    (unit,) = sample.annotations[0].units or ()
    detail = "the edit is more than one sentence"
    rejection = SilverRejection(seed.id, seed.id, seed.language, unit.label, "outside", detail, text=sample.response)
    taken = {**made.taken, unit.label: 0}
    return msgspec.structs.replace(made, samples=(), rejections=(*made.rejections, rejection), taken=taken)


def _settled(made: Made | FailedRow, seed: Seed) -> Made | FailedRow:
    """What a maker gave, as a pair: under the sentence's id, held against the sentence and not the whole page."""
    if isinstance(made, FailedRow):
        return made
    for sample in made.samples:
        if len(sentences(sample.response, seed.language)) > 1:
            return _settled(_longer(made, sample, seed), seed)
    page = seed.sample.evidence[0]
    evidence = (Evidence(seed.sample.response, title=page.title, language=seed.language, url=page.url),)
    samples = tuple(msgspec.structs.replace(record, id=seed.id, evidence=evidence) for record in made.samples)
    rejections = tuple(msgspec.structs.replace(record, id=seed.id) for record in made.rejections)
    return msgspec.structs.replace(made, samples=samples, rejections=rejections)


def inject_pairs(
    output: Path,
    seeds: Sequence[Seed],
    injector: Injector,
    client: Client,
    *,
    support: Support | None = None,
    jobs: int = 8,
    **run: Unpack[RunOptions],
) -> Tally:
    """Have a model put errors into sentences; see `_make_pairs`.

    Args:
        output, seeds, run: as there.
        injector: of the taxonomy `halluverse`, in the form `plain`.
        client: whom to ask, for a check by a model too.
        support: whether the page supports the sentence and not the error; None does not look, and each row says so.
        jobs: calls at the same time.

    Raises:
        UsageError: another taxonomy or form.
    """
    if injector.taxonomy != "halluverse" or injector.form != "plain":
        raise UsageError("Pairs have one error of halluverse's types, read from the edited sentence.")

    def make(drawn: Iterable[tuple[Seed, str]]) -> Iterator[Made | FailedRow]:
        drawn = list(drawn)
        tasks = [SeedTask(seed.id, seed.sample, (type_,)) for seed, type_ in drawn]
        made = in_waves(client, tasks, lambda task: silver_rows(task, injector, support), jobs=jobs)
        for (seed, _), pair in zip(drawn, made, strict=True):
            yield _settled(pair, seed)

    return _make_pairs(
        output,
        seeds,
        make,
        signature=client.signature,
        maker="client",
        types=injector.all_types,
        seed=injector.seed,
        settings={
            "model": injector.model,
            "attempts": injector.attempts,
            "settings": as_json(injector.settings),
            "prompt": f"{injection_version()},{refusals_version()}",
            "support": support.signature if support is not None else None,
        },
        **run,
    )


# Facts and pairs by rule, with no model: sentences with names, numbers and dates, and the errors of `silver --rules`.
#
# An error of the type `sentence` is another person's statement said of this one, or the sentence's negation; both stand
# for the whole sentence, as in HalluVerse25.


_PAIR_RULES_VERSION = "1"
_ATTEMPTS = 12
_PLACELESS = 3  # attempts that find no place for an error, after which further ones would not either
_OTHERS = 30  # pages that are looked into for a statement about somebody else
_NEGATED = 0.3  # of the sentence errors, where the language's negation is known


class _Place(NamedTuple):
    """A page among the articles of its language."""

    material: Material
    number: int
    page: Page


class RuledSet:
    """Pages with all that rules need of them; all pages are held in memory.

    Args:
        pages: those that can be used are kept, by language.
        settings: which those are, and how many facts are taken of each.
        seed: of every draw.
    """

    def __init__(self, pages: Iterable[Page], settings: FactSettings, seed: int) -> None:
        self._settings = settings
        self._seed = seed
        self._pages: dict[str, list[Page]] = defaultdict(list)
        self._empty: dict[str, PageFacts] = {}
        for page in pages:
            empty = empty_page(page, settings)
            if empty is not None:
                self._empty[page.id] = empty
            else:
                self._pages[page.language].append(page)
        self._materials: dict[str, Material] = {}
        self._numbers = {page.id: number for group in self._pages.values() for number, page in enumerate(group)}

    def choose(
        self,
        output: Path,
        pages: Iterable[Page | FailedRow],
        **run: Unpack[RunOptions],
    ) -> Tally:
        """The first step by rule; see `choose_facts`. A page whose sentences hold no facts gives none."""
        return generate(
            output,
            pages,
            lambda rows: map(self._facts, rows),
            signature=f"choice@{CHOICE_VERSION},rules@{RULES_VERSION}",
            settings={"seed": self._seed, "facts": as_json(self._settings)},
            maker="rules",
            **run,
        )

    def pairs(
        self,
        output: Path,
        seeds: Sequence[Seed],
        *,
        types: Sequence[str] = TYPES,
        **run: Unpack[RunOptions],
    ) -> Tally:
        """The second step by rule; see `_make_pairs`.

        Raises:
            InputError: there are no sentences at all.
        """
        if not seeds:
            raise InputError("No page gave a factual sentence.", remedy="Lower min_sentences or set any_subject.")

        tried: dict[tuple[str, str], Made] = {}

        def pair(seed: Seed, type_: str) -> Made:
            key = (seed.id, type_)
            if key not in tried:
                tried[key] = self._pair(seed, type_)
            return tried[key]

        def able(seed: Seed) -> list[str]:
            return [type_ for type_ in types if pair(seed, type_).samples]

        def make(drawn: Iterable[tuple[Seed, str]]) -> Iterator[Made | FailedRow]:
            for seed, type_ in drawn:
                yield _settled(pair(seed, type_), seed)
            tried.clear()  # of this block; the next one has other sentences

        return _make_pairs(
            output,
            seeds,
            make,
            signature=f"pairs@{_PAIR_RULES_VERSION},rules@{RULES_VERSION},{phrases_version()}",
            maker="rules",
            types=types,
            able=able,
            seed=self._seed,
            settings={},
            **run,
        )

    def _place(self, page: Page) -> _Place:
        tag = page.language
        if tag not in self._materials:
            self._materials[tag] = Material(tag, [_article(own) for own in self._pages[tag]])
        return _Place(self._materials[tag], self._numbers[page.id], page)

    def _facts(self, page: Page) -> PageFacts:
        if page.id in self._empty:
            return self._empty[page.id]
        source = self._place(page)
        rng = self._rng("facts", page.id)
        listed = {sentence_ for some in source.material.sentences(source.number) for sentence_ in some}
        text = PageText(page, named=self._settings.named)
        rejected = []
        for sentence in rng.sample(text.sentences, len(text.sentences)):
            if len(text.facts) == self._settings.count:
                break
            if sentence in listed and source.material.values(sentence, source.number):
                fault = text.take(sentence)
                rejected += [] if fault is None else [fault]
        return PageFacts(
            page.id,
            page.language,
            page.group,
            page.reference.title,
            len(text.sentences),
            None,
            self._settings.count,
            tuple(text.facts),
            tuple(rejected),
        )

    def _pair(self, seed: Seed, type_: str) -> Made:
        """One sentence with an error of a type, or what was tried."""
        page = self._of(seed)
        source = self._place(page)
        rejections: list[SilverRejection] = []
        samples: tuple[Sample, ...] = ()
        for attempt in range(1, _ATTEMPTS + 1):
            rng = self._rng("pair", seed.id, type_, attempt)
            quotation = Quotation(source.material.articles[source.number], [seed.sample.response])
            edit = _MAKERS[type_](quotation, source, rng)
            if edit is None:
                rejections.append(_rejection(seed, type_, "no_place", "nothing in it can be changed so", attempt, ""))
                if sum(fault.reason == "no_place" for fault in rejections) == _PLACELESS:
                    break
                continue
            quotation.edits.append((edit, type_))
            text, changes = quotation.applied()
            if type_ == "sentence":
                changes = [Change(0, len(text), 0, len(quotation.text), type_)]
            faults = check(
                quotation.text,
                text,
                changes,
                language=seed.language,
                evidence=[page.reference.text],
                types=(type_,),
            )
            if not faults:
                samples = (_sample(seed, text, changes, edit.way, self._seed),)
                break
            rejections += [
                _rejection(seed, type_, fault.reason, fault.detail, attempt, text[fault.start : fault.end])
                for fault in faults
            ]
        counts = {PASSAGE: 1, type_: 1}
        taken = {PASSAGE: 1, type_: len(samples)}
        return Made(seed.id, seed.language, samples, tuple(rejections), counts, taken)

    def _of(self, seed: Seed) -> Page:
        return self._pages[seed.language][self._numbers[seed.sample.meta["page"]]]

    def _rng(self, *parts: object) -> Random:
        return Random(" ".join(map(str, (*parts, self._seed))))  # noqa: S311  a seeded draw, not a secret


def _article(page: Page) -> Article:
    return Article(page.id, page.language, (page.reference.evidence,), Task.BIOGRAPHY)


def _rejection(seed: Seed, type_: str, reason: str, detail: str, attempt: int, text: str) -> SilverRejection:
    return SilverRejection(seed.id, seed.id, seed.language, type_, reason, detail, attempt, text)


def _sample(seed: Seed, text: str, changes: list[Change], way: str, draw: int) -> Sample:
    made = {
        "seed": seed.id,
        "passage": seed.sample.response,
        "given": True,
        "changes": [msgspec.structs.asdict(change) for change in changes],
        "ways": [way],
        "rules": f"pairs@{_PAIR_RULES_VERSION},rules@{RULES_VERSION}",
        "support": "not checked",
    }
    annotation = Annotation(
        "silver", Kind.MODEL, "halluverse", spans=spans_of(changes, text), units=(Unit(0, len(text), changes[0].type),)
    )
    return msgspec.structs.replace(
        seed.sample,
        response=text,
        generator=Generator("rules", _PAIR_RULES_VERSION, draw),
        annotations=(annotation,),
        meta={**seed.sample.meta, "silver": made},
    )


def _entity(quotation: Quotation, source: _Place, rng: Random) -> Edit | None:
    return entity_error(quotation, source.number, source.material, rng)


def _relation(quotation: Quotation, source: _Place, rng: Random) -> Edit | None:
    return relation_error(quotation, source.number, source.material, rng)


def _sentence(quotation: Quotation, source: _Place, rng: Random) -> Edit | None:
    if rng.random() < _NEGATED:
        negated = contradictory_error(quotation, source.number, source.material, rng)
        if negated is not None:
            return negated
    return _of_another(quotation, source, rng)


def _of_another(quotation: Quotation, source: _Place, rng: Random) -> Edit | None:
    """What another page says of its person by name, with this page's name in place of that one."""
    material, text = source.material, quotation.text
    ours = next((name for name in _forms(source.page.reference.title) if text.startswith(name)), None)
    for _ in range(_OTHERS if len(material.articles) > 1 else 0):
        other = rng.randrange(len(material.articles))
        if other == source.number:
            continue
        listed = [sentence for some in material.sentences(other) for sentence in some]
        for title in _forms(material.articles[other].title):
            after = len(title)
            candidates = [
                sentence
                for sentence in listed
                if sentence.startswith(title) and not sentence[after : after + 1].isalnum()
            ]
            if candidates:
                name = ours or _forms(source.page.reference.title)[0]
                return Edit(0, len(text), name + rng.choice(candidates)[after:], "of another")
    return None


def _forms(title: str) -> list[str]:
    """What a sentence about a person may begin with: the title without brackets, or its last word."""
    bare = title.partition(" (")[0].strip()
    return list(dict.fromkeys(form for form in (bare, bare.rpartition(" ")[2]) if form))


_MAKERS = {"entity": _entity, "relation": _relation, "sentence": _sentence}
