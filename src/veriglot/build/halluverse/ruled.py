"""Facts and pairs by rule, with no model: sentences with names, numbers and dates, and the errors of `silver --rules`.

An error of the type `sentence` is another person's statement said of this one, or the sentence's negation; both stand
for the whole sentence, as in HalluVerse25.
"""

from __future__ import annotations

from collections import defaultdict
from random import Random
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from veriglot.build.halluverse.choosing import PageText
from veriglot.build.halluverse.facts import CHOICE_VERSION, PageFacts, empty_page
from veriglot.build.halluverse.pairs import TYPES, make_pairs, settled
from veriglot.build.injection.changes import Change, spans_of
from veriglot.build.injection.check import check
from veriglot.build.injection.made import PASSAGE, Made, SilverRejection
from veriglot.build.perturbation.articles import Article
from veriglot.build.perturbation.edits import Edit, Quotation
from veriglot.build.perturbation.entities import entity_error
from veriglot.build.perturbation.making import RULES_VERSION
from veriglot.build.perturbation.material import Material
from veriglot.build.perturbation.negation import contradictory_error
from veriglot.build.perturbation.phrases import phrases_version
from veriglot.build.perturbation.relations import relation_error
from veriglot.errors import InputError
from veriglot.records import Annotation, Generator, Kind, Sample, Task, Unit
from veriglot.run import FailedRow, Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from veriglot.build.halluverse.facts import FactSettings
    from veriglot.build.halluverse.pages import Page
    from veriglot.build.halluverse.pairs import Seed
    from veriglot.run import Tally
    from veriglot.run.manifest import Option

__all__ = ["PAIR_RULES_VERSION", "RuledSet"]

PAIR_RULES_VERSION = "1"
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
        *,
        inputs: Sequence[str] = (),
        options: dict[str, Option] | None = None,
        restart: bool = False,
        seen: Callable[[msgspec.Struct | FailedRow], None] | None = None,
    ) -> Tally:
        """The first step by rule; see `choose_facts`. A page whose sentences hold no facts gives none."""
        stage: Stage[Page] = Stage(
            output,
            signature=f"choice@{CHOICE_VERSION},rules@{RULES_VERSION}",
            inputs=inputs,
            options={
                "seed": self._seed,
                "facts": msgspec.json.encode(self._settings, order="deterministic").decode(),
                **(options or {}),
            },
            restart=restart,
            maker="rules",
        )
        return stage.run(pages, lambda rows: map(self._facts, rows), seen=seen)

    def pairs(
        self,
        output: Path,
        seeds: Sequence[Seed],
        *,
        types: Sequence[str] = TYPES,
        inputs: Sequence[str] = (),
        options: dict[str, Option] | None = None,
        restart: bool = False,
        seen: Callable[[msgspec.Struct | FailedRow], None] | None = None,
    ) -> Tally:
        """The second step by rule; see `make_pairs`.

        Raises:
            InputError: there are no sentences at all.
        """
        if not seeds:
            raise InputError("No page gave a factual sentence.", remedy="Lower --least, or add --any-subject.")

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
                yield settled(pair(seed, type_), seed)
            tried.clear()  # of this block; the next one has other sentences

        return make_pairs(
            output,
            seeds,
            make,
            signature=f"pairs@{PAIR_RULES_VERSION},rules@{RULES_VERSION},{phrases_version()}",
            maker="rules",
            types=types,
            able=able,
            seed=self._seed,
            inputs=inputs,
            options=options,
            restart=restart,
            seen=seen,
        )

    def _place(self, page: Page) -> _Place:
        tag = page.language
        if tag not in self._materials:
            self._materials[tag] = Material(tag, [_article(one) for one in self._pages[tag]])
        return _Place(self._materials[tag], self._numbers[page.id], page)

    def _facts(self, page: Page) -> PageFacts:
        if page.id in self._empty:
            return self._empty[page.id]
        place = self._place(page)
        rng = self._rng("facts", page.id)
        listed = {one for some in place.material.sentences(place.number) for one in some}
        text = PageText(page, named=self._settings.named)
        rejected = []
        for sentence in rng.sample(text.sentences, len(text.sentences)):
            if len(text.facts) == self._settings.count:
                break
            if sentence in listed and place.material.values(sentence, place.number):
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
        place = self._place(page)
        rejections: list[SilverRejection] = []
        samples: tuple[Sample, ...] = ()
        for attempt in range(1, _ATTEMPTS + 1):
            rng = self._rng("pair", seed.id, type_, attempt)
            quotation = Quotation(place.material.articles[place.number], [seed.sample.response])
            edit = _MAKERS[type_](quotation, place, rng)
            if edit is None:
                rejections.append(_rejection(seed, type_, "no_place", "nothing in it can be changed so", attempt, ""))
                if sum(one.reason == "no_place" for one in rejections) == _PLACELESS:
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
                _rejection(seed, type_, one.reason, one.detail, attempt, text[one.start : one.end]) for one in faults
            ]
        counts = {PASSAGE: 1, type_: 1}
        taken = {PASSAGE: 1, type_: len(samples)}
        return Made(seed.id, seed.language, samples, tuple(rejections), counts, taken, 0, 0, 0)

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
        "rules": f"pairs@{PAIR_RULES_VERSION},rules@{RULES_VERSION}",
        "support": "not checked",
    }
    annotation = Annotation(
        "silver", Kind.MODEL, "halluverse", spans=spans_of(changes, text), units=(Unit(0, len(text), changes[0].type),)
    )
    return msgspec.structs.replace(
        seed.sample,
        response=text,
        generator=Generator("rules", PAIR_RULES_VERSION, draw),
        annotations=(annotation,),
        meta={**seed.sample.meta, "silver": made},
    )


def _entity(quotation: Quotation, place: _Place, rng: Random) -> Edit | None:
    return entity_error(quotation, place.number, place.material, rng)


def _relation(quotation: Quotation, place: _Place, rng: Random) -> Edit | None:
    return relation_error(quotation, place.number, place.material, rng)


def _sentence(quotation: Quotation, place: _Place, rng: Random) -> Edit | None:
    if rng.random() < _NEGATED:
        negated = contradictory_error(quotation, place.number, place.material, rng)
        if negated is not None:
            return negated
    return _of_another(quotation, place, rng)


def _of_another(quotation: Quotation, place: _Place, rng: Random) -> Edit | None:
    """What another page says of its person by name, with this page's name in place of that one."""
    material, text = place.material, quotation.text
    ours = next((name for name in _forms(place.page.reference.title) if text.startswith(name)), None)
    for _ in range(_OTHERS if len(material.articles) > 1 else 0):
        other = rng.randrange(len(material.articles))
        if other == place.number:
            continue
        listed = [one for some in material.sentences(other) for one in some]
        for theirs in _forms(material.articles[other].title):
            after = len(theirs)
            found = [one for one in listed if one.startswith(theirs) and not one[after : after + 1].isalnum()]
            if found:
                name = ours or _forms(place.page.reference.title)[0]
                return Edit(0, len(text), name + rng.choice(found)[after:], "of another")
    return None


def _forms(title: str) -> list[str]:
    """What a sentence about a person may begin with: the title without brackets, or its last word."""
    bare = title.partition(" (")[0].strip()
    return list(dict.fromkeys(form for form in (bare, bare.rpartition(" ")[2]) if form))


_MAKERS = {"entity": _entity, "relation": _relation, "sentence": _sentence}
