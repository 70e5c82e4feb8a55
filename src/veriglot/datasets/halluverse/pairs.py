"""Pairs of a fact and its edited version: types drawn so that what passes is even, errors by a model or by rule."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import partial
from itertools import groupby
from operator import attrgetter
from random import Random
from typing import TYPE_CHECKING, Any

import msgspec

from veriglot.datasets.generation import generate, in_waves
from veriglot.datasets.halluverse.facts import CHOICE_VERSION, PageFacts, PageText
from veriglot.datasets.prompts import prompt_version
from veriglot.datasets.quality import refusals_version
from veriglot.datasets.rules.material import Article, Material, phrases_version
from veriglot.datasets.rules.silver import RULES_VERSION, Edit, Quotation
from veriglot.datasets.silver.check import Change, Edited
from veriglot.datasets.silver.injection import Task as SeedTask
from veriglot.datasets.silver.job import CHECK_VERSION, Made, SilverCounts, SilverJob, SilverRejection
from veriglot.errors import InputError, UsageError
from veriglot.records import Annotation, Evidence, Generator, Kind, Sample, Task, Unit
from veriglot.records.taxonomy import taxonomy
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
    from veriglot.storage.checkpoint import Tally

    _Maker = Callable[[Iterable[tuple[Sample, str]]], Iterable[Made | FailedRow]]

__all__ = ["TYPES", "RuledSet", "inject_pairs", "read_facts", "seeds_of"]

TYPES = tuple(taxonomy("halluverse").types)


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
            fewest = min(expected[type_] for type_ in free)
            type_ = rng.choice([type_ for type_ in free if expected[type_] == fewest])
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


# A seed is a sample: the factual sentence as response, its page as evidence, so that what the page says is no error.


def read_facts(path: Path) -> list[PageFacts]:
    """The pages of a finished first step, with their facts."""
    decoder = msgspec.json.Decoder(PageFacts)
    return [decoder.decode(line) for line in path.read_bytes().splitlines()]


def seeds_of(facts: Iterable[PageFacts], pages: Mapping[str, Page]) -> list[Sample]:
    """The sentences, language by language, in the order of their pages.

    Args:
        facts: what was chosen.
        pages: the pages that they are from, by id.
    """
    seeds: list[Sample] = []
    for row in facts:
        page, reference = pages[row.id], pages[row.id].reference
        meta: dict[str, Any] = {"group": page.group, "page": page.id}
        if reference.meta.get("revision") is not None:
            meta["revision"] = reference.meta["revision"]
        of_page = Sample("", "", Task.BIOGRAPHY, reference.language, evidence=(reference.evidence,), meta=meta)
        seeds += [msgspec.structs.replace(of_page, id=fact.id, response=fact.text) for fact in row.facts]
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
    seed: int | None = None,
    maker: str = "client",
    **run: Unpack[RunOptions],
) -> Tally:
    """Make a pair of every sentence with `make`, one result each; `able` says which errors a sentence can have."""
    finished = JsonLines(output.with_name(output.name + ".rows.jsonl"))

    def work(rows: Iterator[Sample]) -> Iterator[Made | FailedRow]:
        todo = {row.id for row in rows}
        done = {made.id: bool(made.samples) for made in map(msgspec.json.Decoder(Made).decode, finished.lines())}
        for tag, group in groupby(seeds, key=attrgetter("language")):
            rest = list(group)
            draw = BalancedDraw(types, f"halluverse {seed} {tag}")
            for size in block_sizes(len(rest)):
                block, rest = rest[:size], rest[size:]
                deck = draw.block(size)
                deck = deck if able is None else dealt(deck, [able(row) for row in block])
                drawn = list(zip(block, deck, strict=True))
                outcomes = dict(done)  # whatever an earlier call did of a block counts for the blocks that follow
                missing = [pair for pair in drawn if pair[0].id in todo]
                for (row, _), made in zip(missing, make(missing), strict=True):
                    pair = _settled(made, row)
                    if isinstance(pair, Made):
                        outcomes[pair.id] = bool(pair.samples)
                    yield pair
                for row, type_ in drawn:
                    if row.id in outcomes:
                        draw.note(type_, taken=outcomes[row.id])

    settings = {"seed": seed, "check": f"check@{CHECK_VERSION}", "types": ",".join(types), **settings}
    return generate(
        output,
        seeds,
        work,
        made=Made,
        counts=lambda: SilverCounts(types),
        signature=signature,
        settings=settings,
        maker=maker,
        **run,
    )


def _settled(made: Made | FailedRow, seed: Sample) -> Made | FailedRow:
    """What a maker gave, as a pair: under the sentence's id, held against the sentence and not the whole page.

    An error that added a sentence is none of HalluVerse25's types: it is rejected as `outside`.
    """
    if isinstance(made, FailedRow):
        return made
    tag = seed.language or ""
    rejections = [msgspec.structs.replace(rejection, id=seed.id) for rejection in made.rejections]
    samples, taken = made.samples, made.taken
    long = next((sample for sample in samples if len(sentences(sample.response, tag)) > 1), None)
    if long is not None:
        type_ = (long.annotations[0].units or ())[0].label
        detail = "the edit is more than one sentence"
        rejections.append(SilverRejection(seed.id, seed.id, tag, type_, "outside", detail, text=long.response))
        samples, taken = (), {**taken, type_: 0}
    page = seed.evidence[0]
    evidence = (Evidence(seed.response, title=page.title, language=tag, url=page.url),)
    samples = tuple(msgspec.structs.replace(sample, id=seed.id, evidence=evidence) for sample in samples)
    return msgspec.structs.replace(made, samples=samples, rejections=tuple(rejections), taken=taken)


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
    """Have a model put an error into every sentence.

    Args:
        output: JSON lines of samples: the edited sentence as response, the factual one as evidence. What was rejected
            goes to `rejected_path(output)`, the account to `account_path(output)`.
        seeds: language by language, as `seeds_of` gives them; the same ones at each call.
        injector: of the taxonomy `halluverse`, in the form `plain`.
        client: whom to ask, for a check by a model too.
        support: whether the page supports the sentence and not the error; None does not look, and each row says so.
        jobs: calls at the same time.
        run: see `RunOptions`.

    Returns:
        What became of the sentences. One of which nothing passed is done; one whose calls gave nothing failed.

    Raises:
        UsageError: another taxonomy or form, or the output was begun otherwise.
        ModelError: what every further call would meet too.
    """
    if injector.taxonomy != "halluverse" or injector.form != "plain":
        raise UsageError("Pairs have one error of halluverse's types, read from the edited sentence.")

    def make(drawn: Iterable[tuple[Sample, str]]) -> Iterator[Made | FailedRow]:
        tasks = [SeedTask(seed.id, seed, (type_,)) for seed, type_ in drawn]
        return in_waves(client, tasks, lambda task: SilverJob(injector, task, support).run(), jobs=jobs)

    return _make_pairs(
        output,
        seeds,
        make,
        injector.all_types,
        signature=client.signature,
        seed=injector.seed,
        settings={
            "model": injector.model,
            "attempts": injector.attempts,
            "settings": injector.settings,
            "prompt": f"{prompt_version('injection')},{refusals_version()}",
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
        self._numbers: dict[str, int] = {}
        for page in pages:
            if settings.unfit(page) is None:
                self._numbers[page.id] = len(self._pages[page.language])
                self._pages[page.language].append(page)
        self._materials: dict[str, Material] = {}

    def choose(self, output: Path, pages: Iterable[Page | FailedRow], **run: Unpack[RunOptions]) -> Tally:
        """The first step by rule; see `choose_facts`. A page whose sentences hold no facts gives none."""
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
            InputError: there are no sentences at all.
        """
        if not seeds:
            raise InputError("No page gave a factual sentence.", remedy="Lower min_sentences or set any_subject.")
        tried: dict[tuple[str, str], Made] = {}

        def pair(seed: Sample, type_: str) -> Made:
            key = (seed.id, type_)
            if key not in tried:
                tried[key] = self._pair(seed, type_)
            return tried[key]

        def make(drawn: Iterable[tuple[Sample, str]]) -> Iterator[Made]:
            yield from [pair(seed, type_) for seed, type_ in drawn]
            tried.clear()  # of this block; the next one has other sentences

        return _make_pairs(
            output,
            seeds,
            make,
            types,
            signature=f"pairs@{_PAIR_RULES_VERSION},rules@{RULES_VERSION},{phrases_version()}",
            settings={},
            able=lambda seed: [type_ for type_ in types if pair(seed, type_).samples],
            seed=self._seed,
            maker="rules",
            **run,
        )

    def _quotation(self, tag: str, page: str, listed: list[str]) -> Quotation:
        """Sentences of a page among the others of its language."""
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

    def _pair(self, seed: Sample, type_: str) -> Made:
        """One sentence with an error of a type, or what was tried."""
        tag = seed.language or ""
        rejections: list[SilverRejection] = []
        samples: tuple[Sample, ...] = ()
        for attempt in range(1, _ATTEMPTS + 1):
            rng = self._rng("pair", seed.id, type_, attempt)
            quotation = self._quotation(tag, seed.meta["page"], [seed.response])
            reject = partial(SilverRejection, seed.id, seed.id, tag, type_, attempt=attempt)
            edit = _sentence_error(quotation, rng) if type_ == "sentence" else quotation.error(type_, rng)
            if edit is None:
                rejections.append(reject("no_place", "nothing in it can be changed so"))
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
        return Made(seed.id, tag, samples, tuple(rejections), {"passage": 1, type_: 1}, taken)

    def _sample(self, seed: Sample, quotation: Quotation, edited: Edited) -> Sample:
        version = f"pairs@{_PAIR_RULES_VERSION},rules@{RULES_VERSION}"
        made = {"seed": seed.id, "given": True, **quotation.made(edited, version)}
        units = (Unit(0, len(edited.text), edited.changes[0].type),)
        return msgspec.structs.replace(
            seed,
            response=edited.text,
            generator=Generator("rules", _PAIR_RULES_VERSION, self._seed),
            annotations=(Annotation("silver", Kind.MODEL, "halluverse", spans=edited.spans, units=units),),
            meta={**seed.meta, "silver": made},
        )

    def _rng(self, *parts: object) -> Random:
        return Random(" ".join(map(str, (*parts, self._seed))))  # noqa: S311  a seeded draw, not a secret


def _sentence_error(quotation: Quotation, rng: Random) -> Edit | None:
    """The negation, or what another page says of its person by name, with this page's name in place of that one."""
    negated = quotation.error("contradictory", rng) if rng.random() < _NEGATED else None
    if negated is not None:
        return negated
    material, text = quotation.material, quotation.text
    names = _forms(quotation.article)
    ours = next((name for name in names if text.startswith(name)), names[0] if names else "")
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
                return Edit(0, len(text), ours + rng.choice(candidates)[after:], "of another")
    return None


def _forms(article: Article) -> list[str]:
    """What a sentence about a person may begin with: the title without brackets, or its last word."""
    title = article.title
    return list(dict.fromkeys(form for form in (title, title.rpartition(" ")[2]) if form))
