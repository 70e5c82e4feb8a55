"""One row: a quotation of an article, the planned errors in it, and the check."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import msgspec

from veriglot.build.injection.changes import spans_of
from veriglot.build.injection.check import check
from veriglot.build.injection.made import PASSAGE, ROW, Made, SilverRejection
from veriglot.build.perturbation.edits import Quotation
from veriglot.build.perturbation.entities import entity_error
from veriglot.build.perturbation.negation import contradictory_error
from veriglot.build.perturbation.planning import supported_types
from veriglot.build.perturbation.quoting import without_brackets
from veriglot.build.perturbation.relations import relation_error
from veriglot.build.perturbation.statements import invented_error, subjective_error, unverifiable_error
from veriglot.records import Annotation, Generator, Kind, Sample
from veriglot.text import fold, words

if TYPE_CHECKING:
    from collections.abc import Callable

    from veriglot.build.injection.changes import Change
    from veriglot.build.injection.check import Violation
    from veriglot.build.perturbation.edits import Edit
    from veriglot.build.perturbation.material import Material
    from veriglot.build.perturbation.planning import Planned, RuleSettings

    Maker = Callable[[Quotation, int, Material, Random], Edit | None]

__all__ = ["RULES_VERSION", "make_row"]

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
        for one in violations:
            about = next((c.type for c in changes if (c.start, c.end) == (one.start, one.end)), ROW)
            log.reject(about, one.reason, one.detail, text[one.start : one.end])
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
        short = sum(one.type == PASSAGE for one in self._rejections)
        return Made(
            self._planned.id,
            self._planned.language,
            () if sample is None else (sample,),
            tuple(self._rejections),
            {PASSAGE: self._attempts, **dict.fromkeys(kinds, self._attempts - short)},
            {PASSAGE: self._attempts - short, **dict.fromkeys(kinds, int(sample is not None))},
            0,
            0,
            0,
        )


def _quotation(
    material: Material, number: int, question: str | None, errors: int, reworded: float, rng: Random
) -> Quotation | None:
    """Some sentences of the article in their order; around the one that the question is about, where there is one."""
    listed = list(dict.fromkeys(one for some in material.sentences(number) for one in some))
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
        chosen = [listed[place] for place in sorted(rng.sample(range(len(listed)), count))]
    said = [(without_brackets(one) or one) if rng.random() < reworded else one for one in chosen]
    return Quotation(material.articles[number], said)


def _about(listed: list[str], question: str, language: str) -> int:
    """Which sentence shares the most words with a question; the first of equal ones."""
    asked = _word_set(question, language)
    shared = [len(asked & _word_set(one, language)) / (3 + len(words(one, language))) for one in listed]
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
    """What halluverse's `sentence` is made by: a sentence of the text that is wrong, or one that was added."""
    return tuple(one for one in ("contradictory", "invented", "unverifiable") if one in supported_types(language))


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
