"""References, queries on them (mFAVA, section 4, A.5) written by a model and checked, and biographies (Kang et al.).

The paper checked 250 by hand and never asked again where one was missing. Here every query is checked for language and
for whether its reference answers it; what does not pass is kept beside the output with the reason.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from veriglot.datasets.generation import NoReplyError, as_json, failed_row, generate, in_waves, replies_of, split_rows
from veriglot.datasets.prompts import (
    answer_messages,
    biography_languages,
    biography_prompt,
    check_prompt,
    prompt_version,
    write_prompt,
)
from veriglot.datasets.quality import refusals_version, refuses
from veriglot.errors import InputError
from veriglot.llm.client import AnswerError, Message, Request, Settings
from veriglot.llm.output_parser import decode_answer, schema_of
from veriglot.records import Evidence, Sample, Status, Task
from veriglot.records.languages import same_language
from veriglot.signatures import signature
from veriglot.storage.checkpoint import FailedRow, Usage

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import Unpack

    from veriglot.datasets.generation import RunOptions
    from veriglot.llm.client import Client, Reply
    from veriglot.llm.pool import Answer
    from veriglot.records import Detector
    from veriglot.storage.checkpoint import Tally

__all__ = [
    "AnswerabilityCheck",
    "Author",
    "DetectorCheck",
    "ModelCheck",
    "NamedPerson",
    "Part",
    "Reference",
    "Rejection",
    "biographies",
    "listed",
    "person_from",
    "queries",
    "reference_from",
]


Part = Literal["lead", "text"]

_ID_KEYS = ("id", "page_id", "pageid")
_KEPT = ("page_id", "revision", "item", "categories", "unchecked")  # what of an article goes on with its queries


class Reference(msgspec.Struct, frozen=True, omit_defaults=True):
    """A text in one language that questions can be asked about.

    Attributes:
        id: unique among the references of a run.
        language: BCP 47 tag.
        text: what a question has to be answered from.
        title: its heading.
        url: where it stands.
        meta: what goes on with its queries: revision, categories, which part of the article it is ...
    """

    id: str
    language: str
    text: str
    title: str = ""
    url: str | None = None
    meta: dict[str, Any] = {}

    @property
    def evidence(self) -> Evidence:
        """The text as evidence of a sample."""
        return Evidence(self.text, title=self.title or None, language=self.language, url=self.url)


def reference_from(data: Any, *, part: Part = "lead") -> Reference:
    """A reference from a decoded JSON object, such as an article of `veriglot dataset articles`.

    Args:
        data: an object with `language`, `text` or `lead`, one of `id` (or `page_id`), `title` and `item`, and perhaps
            `url`.
        part: `lead` takes the section before the first heading, as the paper does (mFAVA, A.5), and the whole text
            where there is none; `text` takes all of it.

    Raises:
        InputError: it is no object, or has no text, no language or nothing that names it; `field` names what is
            missing.
    """
    if not isinstance(data, dict):
        raise InputError("a reference is a JSON object")
    language, title = data.get("language"), data.get("title")
    if part == "lead" and not str(data.get("lead") or "").strip():
        part = "text"
    text = data.get(part)
    if not isinstance(language, str) or not language:
        raise InputError("the reference states no language", field="language", remedy="Write its BCP 47 tag.")
    if not isinstance(text, str) or not text.strip():
        raise InputError("the reference has no text", field=part)
    number = next((data[key] for key in _ID_KEYS if data.get(key) not in (None, "")), None)
    if number is None and not title:
        number = data.get("item") or None  # whom it is about names it as well
    if number is None and not title:
        raise InputError("the reference has neither id nor title", field="id")
    named = f"{language}-{title if number is None else number}"
    return Reference(
        id=number if isinstance(number, str) and data.get("id") else named,
        language=language,
        text=text.strip(),
        title=title if isinstance(title, str) else "",
        url=data.get("url") if isinstance(data.get("url"), str) else None,
        meta={**{key: data[key] for key in _KEPT if data.get(key) not in (None, "", [])}, "part": part},
    )


# Whether a query can be answered from its reference: asked of a model, or tried and held against the detector.


_QUOTED = 0.8  # share of the quote's words that have to stand in the reference: models copy almost letter by letter
_MARKED = 0.2  # share of the answer's code points that the detector may mark


class _Verdict(NamedTuple):
    """Whether a query is answerable; if not, why; and what is kept of the check in the query's `meta`."""

    answerable: bool
    detail: str
    notes: dict[str, Any]


class _CheckAnswer(msgspec.Struct, frozen=True):
    answerable: bool
    quote: str


class ModelCheck:
    """A model says whether the reference answers the query, and quotes the passage; the quote has to stand there.

    Args:
        model: as its server names it.
        settings: how it generates; greedy where nothing is said.
        seed: of the calls.
    """

    def __init__(self, model: str, *, settings: Settings | None = None, seed: int | None = None) -> None:
        self._model = model
        self._settings = settings or Settings(temperature=0.0)
        self._seed = seed
        self.signature = signature(check="model", model=model, prompt=prompt_version("queries"), quoted=_QUOTED)

    def request(self, reference: Reference, question: str) -> Request:
        """Asks for a verdict and a quote, as JSON."""
        message = Message("user", check_prompt(reference.language, question, reference.text))
        return Request(
            self._model, (message,), seed=self._seed, settings=self._settings, schema=schema_of(_CheckAnswer)
        )

    def verdict(self, reference: Reference, question: str, reply: Reply) -> _Verdict:  # noqa: ARG002
        """Answerable if the model says so and its quote stands in the reference."""
        try:
            answer = decode_answer(reply, _CheckAnswer)
        except AnswerError as error:
            return _Verdict(False, f"the check cannot be read: {error.message}", {})
        if not answer.answerable:
            return _Verdict(False, "the model that checks says that the text does not answer it", {})
        share = _share_quoted(answer.quote, reference)
        if share < _QUOTED:
            return _Verdict(False, f"the passage that is said to answer it does not stand there: {answer.quote!r}", {})
        return _Verdict(True, "", {"quote": answer.quote})


class DetectorCheck:
    """A model answers the query from the reference, and a detector looks whether the reference supports the answer.

    Args:
        detector: what judges; a fifth of the answer may be marked, since no detector is without false alarms.
        model: what answers, as its server names it.
        settings: how it generates.
        seed: of the calls.
    """

    def __init__(
        self, detector: Detector, model: str, *, settings: Settings | None = None, seed: int | None = None
    ) -> None:
        self._detector = detector
        self._model = model
        self._settings = settings or Settings(temperature=0.0, max_tokens=256)
        self._seed = seed
        self.signature = signature(
            check="detector",
            model=model,
            prompt=prompt_version("answer"),
            refusals=refusals_version(),
            marked=_MARKED,
            detector=detector.signature,
        )

    def request(self, reference: Reference, question: str) -> Request:
        """Asks for an answer from the reference."""
        messages = answer_messages("open", reference.language, question, reference.text)
        return Request(self._model, messages, seed=self._seed, settings=self._settings)

    def verdict(self, reference: Reference, question: str, reply: Reply) -> _Verdict:
        """Answerable if the answer is one and the detector finds it supported."""
        if not reply.text.strip() or refuses(reply.text, reference.language):
            return _Verdict(False, f"the model finds no answer in the text: {reply.text[:200]!r}", {})
        sample = Sample(
            "check", reply.text, Task.QA, reference.language, question=question, evidence=(reference.evidence,)
        )
        (prediction,) = self._detector.predict([sample])
        if prediction.status != Status.SCORED:
            return _Verdict(False, f"the detector did not judge the answer ({prediction.status})", {})
        marked = sum(span.end - span.start for span in prediction.spans or ()) / len(reply.text)
        if marked > _MARKED:
            return _Verdict(False, f"the text does not support {marked:.0%} of an answer: {reply.text[:200]!r}", {})
        return _Verdict(True, "", {"answer": reply.text, "marked": round(marked, 4)})


AnswerabilityCheck = ModelCheck | DetectorCheck


def _share_quoted(quote: str, reference: Reference) -> float:
    """Share of the words of a quote that stand in the reference; 0 for a quote without words."""
    from veriglot.text.normalization import fold
    from veriglot.text.segmentation import words

    text, folded_quote = fold(reference.text), fold(quote)
    evidence_words = {text[start:end] for start, end in words(text, reference.language)}
    quoted = [folded_quote[start:end] for start, end in words(folded_quote, reference.language)]
    return sum(word in evidence_words for word in quoted) / len(quoted) if quoted else 0.0


# Biographies: the same people asked about in every language (Kang et al., section 2.1).


_NAMES = ("names", "labels", "titles")


class NamedPerson(msgspec.Struct, frozen=True):
    """A person.

    Attributes:
        id: of the person, such as the Wikidata item `Q42`.
        names: by BCP 47 tag.
        meta: what goes on with the prompts: page views, properties ...
    """

    id: str
    names: dict[str, str]
    meta: dict[str, Any] = {}


def person_from(data: Any) -> NamedPerson:
    """A person from a decoded JSON object, such as a row of `veriglot dataset people`.

    Args:
        data: an object with `id` (or `item`) and `names` by language (or `labels`, or `titles`); the first of these
            that has a language gives its name.

    Raises:
        InputError: it is no object, or has no id or no name.
    """
    if not isinstance(data, dict):
        raise InputError("a person is a JSON object")
    id_ = data.get("id") or data.get("item")
    if not isinstance(id_, str):
        raise InputError("the person has no id", field="id")
    names: dict[str, str] = {}
    for key in reversed(_NAMES):
        labels = data.get(key)
        if isinstance(labels, dict):
            names.update({tag: name for tag, name in labels.items() if isinstance(name, str) and name.strip()})
    if not names:
        raise InputError("the person has no name in any language", field="names")
    meta = {key: value for key, value in data.items() if key not in {"id", "item", *_NAMES} and value is not None}
    return NamedPerson(id_, names, meta)


def biographies(
    people: Iterable[NamedPerson | FailedRow],
    languages: Sequence[str] | None = None,
    *,
    references: Mapping[tuple[str, str], Reference] | None = None,
) -> Iterator[Sample | FailedRow]:
    """A prompt for every person in every language, as a query with an empty response.

    Ask them with the design `runs` and five seeds for Kang et al.'s five samples a prompt.

    Args:
        people: rows that could not be read pass through.
        languages: BCP 47 tags; where None, the 19 of Kang et al., which have own prompts. Others are asked in English.
        references: what a response is held against, by person and language; queries without one have no evidence, and
            detectors will say so.

    Yields:
        Queries, id `<person>-<language>`; a `FailedRow` where a person has no name in a language.
    """
    for person in people:
        if isinstance(person, FailedRow):
            yield person
            continue
        for tag in biography_languages() if languages is None else languages:
            name = _name_in(person, tag)
            if name is None:
                yield FailedRow(f"{person.id} has no name in {tag}", field="names", id=f"{person.id}-{tag}")
                continue
            reference = (references or {}).get((person.id, tag))
            yield Sample(
                id=f"{person.id}-{tag}",
                response="",
                task=Task.BIOGRAPHY,
                language=tag,
                question=biography_prompt(tag, name),
                evidence=(reference.evidence,) if reference is not None else (),
                meta={
                    "person": person.id,
                    "name": name,
                    "prompt": prompt_version("biography"),
                    **_meta_in(person, tag),
                },
            )


def _name_in(person: NamedPerson, tag: str) -> str | None:
    """The name in a language: under its tag, or under the code without the script (`zh` for `zh-Hans`)."""
    return person.names.get(tag) or person.names.get(tag.partition("-")[0])


def _meta_in(person: NamedPerson, tag: str) -> dict[str, Any]:
    """What goes on with the prompt in one language: of the page views, those of that language."""
    views = person.meta.get("views")
    if not isinstance(views, dict):
        return person.meta
    own_views = views.get(tag, views.get(tag.partition("-")[0]))
    return {key: value for key, value in {**person.meta, "views": own_views}.items() if value is not None}


# What a model wrote as queries, sifted: number, form, language. Every rejection has a reason and is kept.


_Reason = Literal["unreadable", "number", "form", "duplicate", "language", "answerable"]

_FEWEST_LETTERS = 6
_MOST_CODE_POINTS = 600
_LIST_MARK = re.compile(r"^\s*(?:[-*•–]|\(?\d{1,2}[.):、]|[①②③④⑤])\s*")
_QUESTION_MARKS = "?？؟;՞፧"
_AROUND = " \t\"'“”„«»「」『』*"


class _WrittenQueries(msgspec.Struct, frozen=True):
    """What the model is asked to answer with: the queries, in order."""

    queries: tuple[str, ...]


class Rejection(msgspec.Struct, frozen=True, omit_defaults=True):
    """A query that was written and not taken, or one that never came.

    Attributes:
        id: of the query that it would have been.
        reference: id of the reference.
        language: of the reference.
        reason: `unreadable` (the reply holds no queries), `number` (too few, or one too many), `form` (too short, too
            long), `duplicate`, `language`, `answerable`.
        detail: the same in words.
        question: the query, where there is one; else the reply.
    """

    id: str
    reference: str
    language: str
    reason: _Reason
    detail: str
    question: str = ""


def filter_queries(reference: Reference, reply: Reply, count: int) -> tuple[list[tuple[str, str]], list[Rejection]]:
    """The queries in a reply that pass what can be checked without asking again."""
    taken: list[tuple[str, str]] = []
    rejected: list[Rejection] = []

    def reject(number: int, reason: _Reason, detail: str, question: str = "") -> None:
        id_ = f"{reference.id}-q{number}"
        rejected.append(Rejection(id_, reference.id, reference.language, reason, detail, question))

    candidates = _queries(reply)
    if not candidates:
        for number in range(1, count + 1):
            reject(number, "unreadable", "the reply holds no queries", reply.text)
        return taken, rejected
    for number, question in enumerate(candidates, start=1):
        if number > count:
            reject(number, "number", f"{count} queries were asked for, and this is one more", question)
            continue
        trouble = _trouble(reference, question, [text for _, text in taken])
        if trouble is not None:
            reject(number, *trouble, question)
        else:
            taken.append((f"{reference.id}-q{number}", question))
    for number in range(len(candidates) + 1, count + 1):
        reject(number, "number", f"{count} queries were asked for, and {len(candidates)} came")
    return taken, rejected


def _queries(reply: Reply) -> list[str]:
    lines = listed(reply, _WrittenQueries)
    if lines is None:
        lines = [line.rstrip(" ,") for line in reply.text.splitlines() if any(mark in line for mark in _QUESTION_MARKS)]
        lines = [line for line in lines if not line.lstrip().startswith(("{", "["))]  # pieces of JSON are no queries
        if reply.finish == "length" and lines and not reply.text.rstrip().endswith(tuple(_QUESTION_MARKS)):
            lines = [line for line in lines if line.rstrip().endswith(tuple(_QUESTION_MARKS))]
    cleaned = (_LIST_MARK.sub("", line).strip(_AROUND) for line in lines)
    return [line for line in cleaned if line]


def listed(reply: Reply, asked: type[msgspec.Struct]) -> list[str] | None:
    """The texts of a reply in JSON; None where there are none.

    Args:
        reply: what a model said.
        asked: what it was asked for, a record with one field; a bare list and another name for it are read too.
    """
    for type_ in (asked, tuple[str, ...], dict[str, tuple[str, ...]]):
        with suppress(AnswerError):
            answer: Any = decode_answer(reply, type_)
            lists = list(answer.values()) if isinstance(answer, dict) else [answer]
            lists = list(msgspec.structs.astuple(answer)) if isinstance(answer, msgspec.Struct) else lists
            return list(lists[0]) if len(lists) == 1 else None
    return None


def _trouble(reference: Reference, question: str, before: list[str]) -> tuple[_Reason, str] | None:
    from veriglot.text.identification import identify
    from veriglot.text.normalization import fold

    if sum(char.isalpha() for char in question) < _FEWEST_LETTERS and not _dense(question):
        return "form", "it is too short to be a question"
    if len(question) > _MOST_CODE_POINTS:
        return "form", f"it is longer than {_MOST_CODE_POINTS} code points"
    if any(fold(question) == fold(other) for other in before):
        return "duplicate", "it was asked before"
    language = identify(question)
    if language is not None and not same_language(language.tag, reference.language):
        return "language", f"it is in {language.tag} and should be in {reference.language}"
    return None


def _dense(question: str) -> bool:
    """Whether few characters can be a question: where a character is a syllable or a word."""
    return sum("\u3040" <= char <= "\u9fff" or "\uac00" <= char <= "\ud7a3" for char in question) >= 4


class Author(msgspec.Struct, frozen=True):
    """The model that writes the queries.

    Attributes:
        model: as its server names it.
        settings: how it generates.
        seed: of the calls.
        count: queries a reference (mFAVA: two).
    """

    model: str
    settings: Settings = Settings()
    seed: int | None = None
    count: int = 2

    def request(self, reference: Reference) -> Request:
        """Asks for queries on a reference, as JSON."""
        prompt = write_prompt(reference.language, reference.title, reference.text, self.count)
        return Request(
            self.model,
            (Message("user", prompt),),
            seed=self.seed,
            settings=self.settings,
            schema=schema_of(_WrittenQueries),
        )


class _Drafts(msgspec.Struct, frozen=True):
    """What became of one reference: its queries, and what was rejected. The row of the stage."""

    id: str
    samples: tuple[Sample, ...] = msgspec.field(name="queries")
    rejections: tuple[Rejection, ...] = ()


def queries(
    output: Path,
    references: Iterable[Reference | FailedRow],
    author: Author,
    client: Client,
    *,
    check: AnswerabilityCheck | None,
    jobs: int = 8,
    **run: Unpack[RunOptions],
) -> Tally:
    """Write and check queries on every reference.

    Args:
        output: JSON lines of samples with an empty response; what was rejected goes to `rejected_path(output)`. Both
            are made at the end from `OUT.rows.jsonl`, where a run that stopped goes on.
        references: the same ones in the same order at each call.
        author: who writes them.
        client: whom to ask, for the check too.
        check: whether a query can be answered; None takes them unchecked, and says so in their `meta`.
        jobs: calls at the same time.
        run: see `RunOptions`.

    Returns:
        What became of the references. A reference whose calls gave nothing is a failed row.

    Raises:
        UsageError: the output was begun otherwise.
        ModelError: what every further call would meet too.
    """
    return generate(
        output,
        references,
        lambda rows: in_waves(client, rows, lambda reference: _drafts(reference, author, check), jobs=jobs),
        signature=client.signature,
        settings={
            "model": author.model,
            "count": author.count,
            "seed": author.seed,
            "settings": as_json(author.settings),
            "prompt": prompt_version("queries"),
            "check": check.signature if check is not None else None,
        },
        finish=lambda rows, target: split_rows(rows, target, _Drafts),
        **run,
    )


def _drafts(
    reference: Reference, author: Author, check: AnswerabilityCheck | None
) -> Generator[tuple[Request, ...], list[Answer], _Drafts | FailedRow]:
    """The work on one reference: the queries that passed and all that did not, in the order of their numbers."""
    try:
        (reply,) = replies_of((yield (author.request(reference),)))
        accepted, rejected = filter_queries(reference, reply, author.count)
        verdicts: list[_Verdict | None] = [None] * len(accepted)
        if check is not None:
            replies = replies_of((yield tuple(check.request(reference, question) for _, question in accepted)))
            pairs = zip(accepted, replies, strict=True)
            verdicts = [check.verdict(reference, question, reply) for (_, question), reply in pairs]
    except NoReplyError as failure:
        return failed_row(failure, reference.id, Usage())
    samples: list[Sample] = []
    for (id_, question), verdict in zip(accepted, verdicts, strict=True):
        if verdict is not None and not verdict.answerable:
            rejected.append(Rejection(id_, reference.id, reference.language, "answerable", verdict.detail, question))
        else:
            samples.append(_query(reference, id_, question, verdict))
    return _Drafts(reference.id, tuple(samples), tuple(sorted(rejected, key=lambda rejection: rejection.id)))


def _query(reference: Reference, id_: str, question: str, verdict: _Verdict | None) -> Sample:
    from veriglot.text.identification import identify

    checks = {
        "language": "identified" if identify(question) is not None else "not identified",
        "answerable": "not checked" if verdict is None else "checked",
        **(verdict.notes if verdict is not None else {}),
    }
    return Sample(
        id=id_,
        response="",
        task=Task.QA,
        language=reference.language,
        question=question,
        evidence=(reference.evidence,),
        meta={**reference.meta, "reference": reference.id, "checks": checks},
    )
