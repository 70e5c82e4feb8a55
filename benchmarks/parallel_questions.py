"""Questions of XQuAD that stand in every one of its languages, and right and wrong responses made of them.

XQuAD (Artetxe et al. 2020) holds the same paragraphs and questions in twelve languages, so a response in one language
can be held against the paragraph in another, and whether it is right is known without anybody's judgement. A wrong
response is made of another question's answer, the same question in every language. It counts as wrong only where no
language's paragraph holds it, or, for `near`, where it answers another question about the paragraph. A few `near` ones
may be right by other words all the same (nobody looked at each), so 1.0 cannot be asked of them.

Only test articles are used; the others are for training. The split depends on the title alone (`is_test`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import TYPE_CHECKING

import veriglot
from veriglot.records import Annotation, Evidence, Kind, Sample, Span, Task
from veriglot.text.normalization import fold
from veriglot.text.segmentation import sentences, words
from veriglot.training.grounding.examples import share_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

LANGUAGES = ("ar", "de", "el", "en", "es", "hi", "ro", "ru", "th", "tr", "vi", "zh")
PIVOT = "en"  # decides what kind an answer is of: it has capitals, and its digits are ASCII

# What can be made of a question: the form of the response, and what is wrong with it (None where it is right). A round
# of twelve holds as many right responses as wrong ones of each form.
ROLES: tuple[tuple[str, str | None], ...] = (
    ("bare", None), ("bare", "far"), ("bare", None), ("bare", "near"),
    ("said", None), ("said", "far"), ("said", None), ("said", "near"),
    ("sentence", None), ("sentence", "exchanged"), ("sentence", None), ("sentence", "elsewhere"),
)  # fmt: skip

_TEST_SHARE = 0.3
_LONGEST_ANSWER = 80  # code points, in any language: longer ones are clauses, and no other answer is of their kind
_MARKS = "?？؟;।¿ "
_FRONTED = frozenset({"ar", "de", "el", "en", "es", "ro", "ru"})  # these begin a question with the question word
_STOPS = {"hi": "।", "th": "", "zh": "。"}
_COLONS = {"zh": "："}


@dataclass(frozen=True)
class Version:
    """One question in one language; `start` is where the answer stands in the paragraph."""

    language: str
    question: str
    answer: str
    paragraph: str
    start: int

    @cached_property
    def folded(self) -> tuple[str, str]:
        """Answer and paragraph as they are compared."""
        return fold(self.answer), fold(self.paragraph)

    @cached_property
    def sentence(self) -> tuple[int, int] | None:
        """The sentence that holds the answer, without white space around it; None where the answer crosses two."""
        for start, end in sentences(self.paragraph, self.language):
            if start <= self.start and self.start + len(self.answer) <= end:
                text = self.paragraph[start:end]
                first = start + len(text) - len(text.lstrip())
                return first, first + len(text.strip())
        return None


@dataclass(frozen=True)
class Question:
    """One question in every language, with the ids of the questions that wrong responses are made of.

    Attributes:
        id: of the question.
        article: its title.
        place: article and paragraph: what is resampled as one.
        kind: `number`, `name` or `word`, by the English answer.
        versions: language to its version.
        others: `near`, `far` and `elsewhere` to the question that gives the wrong answer or sentence.
    """

    id: str
    article: str
    place: str
    kind: str
    versions: dict[str, Version]
    others: dict[str, Question]


def is_test(title: str) -> bool:
    """Whether an article is held out from training, by its title as the files have it."""
    return share_of("xquad:" + title) < _TEST_SHARE


def kind_of(answer: str) -> str:
    """What an English answer is: a number, a name or something else."""
    if any(c.isdigit() for c in answer):
        return "number"
    return "name" if any(word[0].isupper() for word in answer.split()) else "word"


def read_questions(folder: Path, seed: int) -> list[Question]:
    """The test questions that have a wrong answer and sentence of every kind, in the order of the English file.

    Args:
        folder: where `xquad.<language>.json` lie.
        seed: draws the wrong ones.

    Raises:
        InputError: a file is missing or broken.
        ValueError: a question does not stand in every file, under one title.
    """
    files = {tag: list(veriglot.read(folder / f"xquad.{tag}.json")) for tag in LANGUAGES}
    by_id = {tag: {str(s.meta["question_id"]): s for s in rows} for tag, rows in files.items()}
    everything = []
    for id_, english in by_id[PIVOT].items():
        samples = {tag: rows.get(id_) for tag, rows in by_id.items()}
        titles = {sample.evidence[0].title for sample in samples.values() if sample is not None}
        if None in samples.values() or titles != {english.evidence[0].title}:
            raise ValueError(f"the question {id_} does not stand in every file under one title: {titles}")
        everything.append(_question(id_, {tag: sample for tag, sample in samples.items() if sample is not None}))
    usable = [q for q in everything if is_test(q.article) and _is_usable(q)]
    rng = Random(f"wrong {seed}")
    for question in usable:
        question.others.update(_others(question, usable, rng))
    return [question for question in usable if len(question.others) == 3]


def _question(id_: str, samples: dict[str, Sample]) -> Question:
    versions = {}
    for tag, sample in samples.items():
        place = sample.meta["answer_in_evidence"]
        start = place[0] if place is not None else -1
        versions[tag] = Version(tag, sample.question or "", sample.response, sample.evidence[0].text, start)
    english = samples[PIVOT]
    title = english.evidence[0].title or ""
    return Question(id_, title, f"{title}: {english.evidence[0].text[:80]}", kind_of(english.response), versions, {})


def _is_usable(question: Question) -> bool:
    return all(
        v.start >= 0 and len(v.answer) <= _LONGEST_ANSWER and v.sentence is not None for v in question.versions.values()
    )


def _others(question: Question, among: Sequence[Question], rng: Random) -> Iterator[tuple[str, Question]]:
    near = [q for q in among if q.place == question.place and q.kind == question.kind and _differ(question, q)]
    outside = [q for q in among if q.place != question.place and not _holds(question, q)]
    far = [q for q in outside if q.kind == question.kind]
    elsewhere = [q for q in outside if q.article == question.article]
    for name, found in (("near", near), ("far", far), ("elsewhere", elsewhere)):
        if found:
            yield name, rng.choice(found)


def _differ(one: Question, other: Question) -> bool:
    """Whether neither answer holds the other, in any language."""
    pairs = ((one.versions[tag].folded[0], other.versions[tag].folded[0]) for tag in LANGUAGES)
    return all(a not in b and b not in a for a, b in pairs)


def _holds(question: Question, other: Question) -> bool:
    """Whether the paragraph holds the other answer, in any language."""
    return any(other.versions[tag].folded[0] in question.versions[tag].folded[1] for tag in LANGUAGES)


@dataclass(frozen=True)
class Item:
    """One response to judge.

    Attributes:
        sample: question and response in one language, evidence in another.
        form: `bare`, `said` or `sentence`.
        wrong: what is wrong with it: `near`, `far`, `exchanged`, `elsewhere`; None where it is right.
        kind: `number`, `name` or `word`.
        place: what is resampled as one.
    """

    sample: Sample
    form: str
    wrong: str | None
    kind: str
    place: str


def drawn(questions: Sequence[Question], response: str, evidence: str, count: int, seed: int) -> list[Item]:
    """`count` responses in the language `response` with evidence in the language `evidence`, each of its own question.

    Raises:
        ValueError: there are fewer questions.
    """
    if count > len(questions):
        raise ValueError(f"{count} responses a pair were asked for, but there are {len(questions)} questions")
    rng = Random(f"{seed} {response} {evidence}")
    chosen = rng.sample(questions, count)
    return [
        item_of(question, response, evidence, *ROLES[i % len(ROLES)], before=rng.random() < 0.5)
        for i, question in enumerate(chosen)
    ]


def item_of(
    question: Question, response: str, evidence: str, form: str, wrong: str | None, *, before: bool = False
) -> Item:
    """One response with what is wrong in it marked; `before` puts a said answer before the words of its question."""
    version = question.versions[response]
    source = question.others["far" if wrong == "exchanged" else wrong].versions[response] if wrong else version
    asked: str | None = version.question
    marked = source.answer
    if form == "bare":
        around = "", ""
    elif form == "said":
        around = _said(version, before=before)
    else:
        asked = None
        around, marked = _quoted(version, source, wrong)
    start, end = len(around[0]), len(around[0]) + len(marked)
    spans = (Span(start, end, "entity", text=marked),) if wrong else ()
    sample = Sample(
        id=f"{response}:{evidence}:{question.id}:{form}:{wrong or 'right'}",
        response=around[0] + marked + around[1],
        task=Task.QA if asked else Task.SUMMARIZATION,
        language=response,
        question=asked,
        evidence=(Evidence(question.versions[evidence].paragraph, title=question.article, language=evidence),),
        annotations=(Annotation(annotator="rule", kind=Kind.HUMAN, taxonomy="fava", spans=spans),),
        meta={"group": question.place},
    )
    return Item(sample, form, wrong, question.kind, question.place)


def _quoted(version: Version, source: Version, wrong: str | None) -> tuple[tuple[str, str], str]:
    """What stands before and after the answer in its sentence, and what stands in its place."""
    whole = source if wrong == "elsewhere" else version
    assert whole.sentence is not None
    start, end = whole.sentence
    if wrong == "elsewhere":
        return ("", ""), whole.paragraph[start:end]
    after = version.start + len(version.answer)
    return (whole.paragraph[start : version.start], whole.paragraph[after:end]), source.answer


def _said(version: Version, *, before: bool) -> tuple[str, str]:
    """The words of the question around its answer, without the question word where it comes first."""
    asked = version.question.strip(_MARKS)
    if version.language in _FRONTED:
        bounds = words(asked, version.language)
        asked = asked[bounds[1][0] :] if len(bounds) > 2 else asked
    stop, colon = _STOPS.get(version.language, "."), _COLONS.get(version.language, ": ")
    return ("", f"{'，' if version.language == 'zh' else ' '}{asked}{stop}") if before else (f"{asked}{colon}", stop)
