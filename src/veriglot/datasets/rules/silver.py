"""Silver data by rule: the whole set as one output that goes on where it stopped."""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter
from random import Random
from typing import TYPE_CHECKING, Any

import msgspec

from veriglot.datasets.generation import as_json
from veriglot.datasets.rules.errors import (
    Quotation,
    contradictory_error,
    entity_error,
    invented_error,
    relation_error,
    subjective_error,
    unverifiable_error,
)
from veriglot.datasets.rules.material import Material, without_brackets
from veriglot.datasets.rules.phrases import phrase_languages, phrases_of, phrases_version
from veriglot.datasets.silver.check import check, spans_of
from veriglot.datasets.silver.job import CHECK_VERSION, PASSAGE, ROW, Made, SilverRejection, generate_silver
from veriglot.errors import InputError, UsageError
from veriglot.records import Annotation, Generator, Kind, Sample
from veriglot.text.normalization import fold
from veriglot.text.segmentation import words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import Unpack

    from veriglot.datasets.generation import RunOptions
    from veriglot.datasets.rules.errors import Edit
    from veriglot.datasets.rules.material import Articles
    from veriglot.datasets.silver.check import Change, Violation
    from veriglot.storage.checkpoint import Tally

__all__ = [
    "RULES_VERSION",
    "RULE_TAXONOMIES",
    "Planned",
    "RuleSettings",
    "make_row",
    "planned_rows",
    "quotable_languages",
    "rule_silver",
    "supported_types",
]


# Which rows are made: how many of each language, which of them are clean, and which errors the others get.
#
# Everything is settled before the first row is made, so that shares come out as asked, and any row can be made alone.


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
    whole_numbers = {name: int(share) for name, share in exact.items()}
    left = sorted(exact, key=lambda name: whole_numbers[name] - exact[name])
    for name in left[: whole - sum(whole_numbers.values())]:
        whole_numbers[name] += 1
    return whole_numbers


# One row: a quotation of an article, the planned errors in it, and the check.


if TYPE_CHECKING:
    Maker = Callable[[Quotation, int, Material, Random], Edit | None]


RULES_VERSION = "2"
_ATTEMPTS = 100
_LENGTHS = (1, 2, 2, 3, 3, 4, 5, 6)  # sentences in a row
_TOGETHER = 0.6  # of the quotations: sentences that follow on each other
_ASKED = 0.5  # of the rows: about one of the article's questions, where it has any


def make_row(planned: Planned, material: Material, settings: RuleSettings) -> Made:
    """Make one row, from the article that is next in turn or, where that does not do, from others.

    It depends on the plan, the articles and the settings alone, not on the rows before it.

    Returns:
        What became of it: one sample, or none after 100 attempts; and what was not taken, by the reasons of the check,
        `no_place` (the quotation has no place for an error of the type), or `too_short` (there is too little to quote).
    """
    rng = Random(f"row {settings.seed} {planned.id}")  # noqa: S311  a seeded draw, not a secret
    log = _Log(planned)
    for attempt in range(_ATTEMPTS):
        number = rng.randrange(len(material.articles)) if attempt else planned.number % len(material.articles)
        article = material.articles[number]
        log.begin(article.id)
        question = rng.choice(article.questions) if article.questions and rng.random() < _ASKED else None
        quotation = _quotation(material, number, question, len(planned.types), settings.reworded, rng)
        if quotation is None:
            log.reject(PASSAGE, "too_short", "there are fewer whole sentences than errors to put in")
            continue
        missed = _put_in(quotation, number, planned.types, material, rng)
        if missed is not None:
            log.reject(missed, "no_place", "nothing in the quotation can be changed so", quotation.text)
            continue
        text, changes = quotation.applied()
        violations = _violations(quotation, text, changes, planned) if planned.types else []
        if not violations:
            return log.made(_sample(planned, quotation, question, text, changes, settings))
        for violation in violations:
            about = next((c.type for c in changes if (c.start, c.end) == (violation.start, violation.end)), ROW)
            log.reject(about, violation.reason, violation.detail, text[violation.start : violation.end])
    return log.made(None)


class _Log:
    """What was tried for one row."""

    def __init__(self, planned: Planned) -> None:
        self._planned = planned
        self._attempts = 0
        self._article = ""
        self._rejections: list[SilverRejection] = []

    def begin(self, article: str) -> None:
        """Begin another attempt, from an article."""
        self._attempts += 1
        self._article = article

    def reject(self, type_: str, reason: str, detail: str, text: str = "") -> None:
        """Note why the attempt came to nothing."""
        id_, language = self._planned.id, self._planned.language
        self._rejections.append(
            SilverRejection(id_, self._article, language, type_, reason, detail, self._attempts, text)
        )

    def made(self, sample: Sample | None) -> Made:
        """All of it; of each type one is asked for in every attempt, and taken where the row was made."""
        kinds = set(self._planned.types)
        short = sum(rejection.type == PASSAGE for rejection in self._rejections)
        return Made(
            self._planned.id,
            self._planned.language,
            () if sample is None else (sample,),
            tuple(self._rejections),
            {PASSAGE: self._attempts, **dict.fromkeys(kinds, self._attempts - short)},
            {PASSAGE: self._attempts - short, **dict.fromkeys(kinds, int(sample is not None))},
        )


def _quotation(
    material: Material, number: int, question: str | None, errors: int, reworded: float, rng: Random
) -> Quotation | None:
    """Some sentences of the article in their order; around the one that the question is about, where there is one."""
    listed = list(dict.fromkeys(sentence for some in material.sentences(number) for sentence in some))
    count = min(len(listed), max(errors, rng.choice(_LENGTHS)))
    if not listed or count < errors:
        return None
    if question is not None:
        first = _about(listed, question, material.language)
        first = min(max(0, first - rng.randrange(count)), len(listed) - count)
        chosen = listed[first : first + count]
    elif rng.random() < _TOGETHER:
        first = rng.randrange(len(listed) - count + 1)
        chosen = listed[first : first + count]
    else:
        chosen = [listed[index] for index in sorted(rng.sample(range(len(listed)), count))]
    sentences = [
        (without_brackets(sentence) or sentence) if rng.random() < reworded else sentence for sentence in chosen
    ]
    return Quotation(material.articles[number], sentences)


def _about(listed: list[str], question: str, language: str) -> int:
    """Which sentence shares the most words with a question; the first of equal ones."""
    asked = _word_set(question, language)
    shared = [len(asked & _word_set(sentence, language)) / (3 + len(words(sentence, language))) for sentence in listed]
    return shared.index(max(shared))


def _word_set(text: str, language: str) -> frozenset[str]:
    folded = fold(text)
    return frozenset(folded[s:e] for s, e in words(folded, language))


def _put_in(quotation: Quotation, number: int, types: tuple[str, ...], material: Material, rng: Random) -> str | None:
    """Put the errors in; returns the type that found no place, or None where all did."""
    for type_ in sorted(types, key=_ORDER.index):
        maker = _MAKERS[type_] if type_ in _MAKERS else _MAKERS[rng.choice(_sentences_of(material.language))]
        edit = maker(quotation, number, material, rng)
        if edit is None:
            return type_
        quotation.edits.append((edit, type_))
    return None


_MAKERS: dict[str, Maker] = {
    "contradictory": contradictory_error,
    "invented": invented_error,
    "subjective": subjective_error,
    "unverifiable": unverifiable_error,
    "entity": entity_error,
    "relation": relation_error,
}
_ORDER = ("contradictory", "sentence", "invented", "unverifiable", "subjective", "entity", "relation")


def _sentences_of(language: str) -> tuple[str, ...]:
    """What HalluVerse25's `sentence` is made by: a sentence of the text that is wrong, or one that was added."""
    return tuple(type_ for type_ in ("contradictory", "invented", "unverifiable") if type_ in supported_types(language))


def _violations(quotation: Quotation, text: str, changes: list[Change], planned: Planned) -> list[Violation]:
    return check(
        quotation.text,
        text,
        changes,
        language=planned.language,
        evidence=quotation.article.texts,
        types=planned.types,
    )


def _sample(
    planned: Planned,
    quotation: Quotation,
    question: str | None,
    text: str,
    changes: list[Change],
    settings: RuleSettings,
) -> Sample:
    """The row. `meta` has `group` (its article), and under `silver` what was changed and by which rules."""
    made: dict[str, Any] = {
        "seed": quotation.article.id,
        "passage": quotation.text,
        "changes": [msgspec.structs.asdict(change) for change in changes],
        "ways": quotation.ways(),
        "rules": f"rules@{RULES_VERSION}",
        "support": "not checked",
    }
    return Sample(
        id=planned.id,
        response=text,
        task=quotation.article.task,
        language=planned.language,
        question=question,
        evidence=quotation.article.passages,
        generator=Generator("rules", RULES_VERSION, settings.seed),
        annotations=(Annotation("rules", Kind.MODEL, settings.taxonomy, spans_of(changes, text)),),
        meta={"group": quotation.article.id, "silver": made},
    )


_FEWEST_ARTICLES = 2  # what stands in one is put into another


def quotable_languages(articles: Articles) -> list[str]:
    """The languages with articles enough to make rows of."""
    return [tag for tag in articles.languages() if len(articles.of(tag)) >= _FEWEST_ARTICLES]


def rule_silver(
    output: Path,
    articles: Articles,
    settings: RuleSettings,
    **run: Unpack[RunOptions],
) -> Tally:
    """Make silver data by rule.

    Args:
        output: JSON lines of samples, annotated by `rules`. What was not taken goes to `rejected_path(output)`, the
            account to `account_path(output)`; both in the form of data that models make.
        articles: what is quoted; languages with a single article are left out.
        settings: what is made.
        run: see `RunOptions`.

    Returns:
        What became of all planned rows. One that 100 attempts did not make counts as done; the account tells.

    Raises:
        InputError: no language has two articles.
        UsageError: the output was begun otherwise.
    """
    languages = quotable_languages(articles)
    if not languages:
        raise InputError(
            "No language has two articles whose passages can be quoted.",
            remedy="Name files with evidence, and say their language with --language where they do not.",
        )

    def work(rows: Iterator[Planned]) -> Iterator[Made]:
        for tag, planned in groupby(rows, key=attrgetter("language")):
            material = Material(tag, articles.of(tag))
            for row in planned:
                yield make_row(row, material, settings)

    return generate_silver(
        output,
        planned_rows(languages, settings),
        work,
        RULE_TAXONOMIES[settings.taxonomy],
        signature=f"rules@{RULES_VERSION},{phrases_version()}",
        settings={"settings": as_json(settings), "check": f"check@{CHECK_VERSION}"},
        maker="rules",
        **run,
    )
