"""References; queries on them (mFAVA, section 4, A.5), written by a model and checked; biographies (Kang et al.).

The paper's authors checked 250 queries by hand, and did not replace missing ones. Here every query is checked for its
language and for whether its reference answers it; rejected ones are in a file beside the output, with the reason.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, Unpack

import msgspec

from veriglot.datasets.generation import LanguageModel, RunOptions, generate, run_conversations
from veriglot.datasets.prompts import by_language, default_prompts, filled, prompt_version
from veriglot.datasets.quality import refusals_version, refuses
from veriglot.datasets.responses import Respondent
from veriglot.errors import InputError
from veriglot.llm.client import AnswerError, Client, Reply, Request, Settings
from veriglot.records import Detector, Evidence, Sample, Status, Task
from veriglot.records.languages import language_name, same_language
from veriglot.records.settings import Record
from veriglot.signatures import signature
from veriglot.storage.checkpoint import FailedRow, Tally
from veriglot.text.identification import identify
from veriglot.text.normalization import fold
from veriglot.text.segmentation import folded_words

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path


__all__ = [
    "LIST_MARK",
    "AnswerabilityCheck",
    "Author",
    "NamedPerson",
    "Part",
    "Reference",
    "biographies",
    "biography_languages",
    "listed",
    "person_from",
    "queries",
    "reference_from",
]


Part = Literal["lead", "text"]

_ID_KEYS = ("id", "page_id", "pageid", "title", "item")  # the person is an id too
_META = ("page_id", "revision", "item", "categories", "unchecked")  # of an article, copied to its queries


class Reference(Record, omit_defaults=True):
    """A text in one language, as a basis for questions.

    Attributes:
        id: unique among the references of a run.
        language: BCP 47 tag.
        text: the basis of the answers.
        title: its heading.
        url: its address.
        meta: passed on to its queries: revision, categories, part of the article ...
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
        data: an object with `language`, `text` or `lead`, one of `id` (or `page_id`), `title` and `item`, and
            optionally `url`.
        part: `lead` takes the section before the first heading, as the paper does (mFAVA, A.5), or the whole text if
            there is none; `text` takes all of it.

    Raises:
        InputError: it is not an object, or has no text, no language or no id; `field` names what is missing.
    """
    if not isinstance(data, dict):
        raise InputError("a reference is a JSON object")
    language, title = data.get("language"), data.get("title")
    if part == "lead" and not str(data.get("lead") or "").strip():
        part = "text"
    text = data.get(part)
    if not isinstance(language, str) or not language:
        raise InputError("the reference states no language", "Write its BCP 47 tag.", field="language")
    if not isinstance(text, str) or not text.strip():
        raise InputError("the reference has no text", field=part)
    number = next((data[key] for key in _ID_KEYS if data.get(key) not in (None, "")), None)
    if number is None:
        raise InputError("the reference has neither id nor title", field="id")
    return Reference(
        id=number if isinstance(number, str) and data.get("id") else f"{language}-{number}",
        language=language,
        text=text.strip(),
        title=title if isinstance(title, str) else "",
        url=data.get("url") if isinstance(data.get("url"), str) else None,
        meta={**{key: data[key] for key in _META if data.get(key) not in (None, "", [])}, "part": part},
    )


# Whether a query can be answered from its reference: by a model's verdict, or by an answer that a detector checks.


_QUOTED = 0.8  # minimum share of the quote's words that are in the reference: models copy almost literally
_MARKED = 0.2  # maximum share of the answer's code points that the detector marks


class _CheckAnswer(Record):
    answerable: bool
    quote: str


class AnswerabilityCheck:
    """Checks whether a reference answers a query.

    Either a model says so and quotes the passage, which must be in the reference; or it answers from the reference, and
    a detector checks whether the reference supports the answer.

    Args:
        model: its name on the server; greedy.
        detector: judges answers; it may mark a fifth of one, because every detector has false positives. None asks for
            quotes.
        seed: of the calls.
    """

    def __init__(self, model: str, detector: Detector | None = None, *, seed: int | None = None) -> None:
        self._detector = detector
        self._seed = seed
        self._model = LanguageModel(model, Settings(temperature=0.0), seed)
        self._respondent = Respondent("", model, style="open", settings=Settings(temperature=0.0, max_tokens=256))
        if detector is None:
            self.signature = signature(check="model", model=model, prompt=prompt_version("queries"), quoted=_QUOTED)
        else:
            self.signature = signature(
                check="detector",
                model=model,
                prompt=prompt_version("answer"),
                refusals=refusals_version(),
                marked=_MARKED,
                detector=detector.signature,
            )

    def request(self, reference: Reference, question: str) -> Request:
        """The request for a verdict and a quote, as JSON; or for an answer from the reference."""
        if self._detector is not None:
            return self._respondent.request(_sample(reference, question), self._seed)
        prompt = filled("queries", "check", reference.language, question=question, text=reference.text)
        return self._model.asked(prompt, answer=_CheckAnswer)

    def verdict(self, reference: Reference, question: str, reply: Reply) -> dict[str, Any] | str:
        """The `meta` of an answerable query, with results of the check; or why it is not answerable."""
        if self._detector is not None:
            return _supported(reply.text, reference, question, self._detector)
        try:
            answer = reply.decode(_CheckAnswer)
        except AnswerError as error:
            return f"the check cannot be read: {error.message}"
        if not answer.answerable:
            return "the checking model says that the text does not answer it"
        evidence_words = set(folded_words(reference.text, reference.language))
        quoted = folded_words(answer.quote, reference.language)
        if not quoted or sum(word in evidence_words for word in quoted) / len(quoted) < _QUOTED:
            return f"the passage that is quoted as the answer is not in the text: {answer.quote!r}"
        return {"quote": answer.quote}


def _sample(reference: Reference, question: str, response: str = "") -> Sample:
    return Sample("check", response, Task.QA, reference.language, question=question, evidence=(reference.evidence,))


def _supported(answer: str, reference: Reference, question: str, detector: Detector) -> dict[str, Any] | str:
    if not answer.strip() or refuses(answer, reference.language):
        return f"the model finds no answer in the text: {answer[:200]!r}"
    (prediction,) = detector.predict([_sample(reference, question, answer)])
    if prediction.status != Status.SCORED:
        return f"the detector did not judge the answer ({prediction.status})"
    marked = sum(span.end - span.start for span in prediction.spans or ()) / len(answer)
    if marked > _MARKED:
        return f"the text does not support {marked:.0%} of an answer: {answer[:200]!r}"
    return {"answer": answer, "marked": round(marked, 4)}


# Biographies: questions about the same people in every language (Kang et al., section 2.1).


_NAMES = ("titles", "labels", "names")


class NamedPerson(Record):
    """A person.

    Attributes:
        id: of the person, such as the Wikidata item `Q42`.
        names: by BCP 47 tag.
        meta: passed on to the prompts: page views, properties ...
        titles: of the articles about the person, by BCP 47 tag.
    """

    id: str
    names: dict[str, str]
    meta: dict[str, Any] = {}
    titles: dict[str, str] = {}

    @property
    def views(self) -> int:
        """The sum of the known page views."""
        by_language = self.meta.get("views")
        if isinstance(by_language, dict):
            return sum(views for views in by_language.values() if isinstance(views, int))
        return by_language if isinstance(by_language, int) else 0

    def name_in(self, tag: str) -> str | None:
        """The name in a language: under its tag, or under the code without the script (`zh` for `zh-Hans`)."""
        return self.names.get(tag) or self.names.get(tag.partition("-")[0])


def person_from(data: Any) -> NamedPerson:
    """A person from a decoded JSON object, such as a row of `veriglot dataset people`.

    Args:
        data: an object with `id` (or `item`) and `names` by language (or `labels`, or `titles`); for each language the
            first of these that has one gives the name.

    Raises:
        InputError: it is not an object, or has no id or no name.
    """
    if not isinstance(data, dict):
        raise InputError("a person is a JSON object")
    id_ = data.get("id") or data.get("item")
    if not isinstance(id_, str):
        raise InputError("the person has no id", field="id")
    listed = [texts if isinstance(texts, dict) else {} for texts in map(data.get, _NAMES)]
    titles, labels, names = (
        {tag: name for tag, name in texts.items() if isinstance(name, str) and name.strip()} for texts in listed
    )
    names = titles | labels | names
    if not names:
        raise InputError("the person has no name in any language", field="names")
    meta = {key: value for key, value in data.items() if key not in {"id", "item", *_NAMES} and value is not None}
    return NamedPerson(id_, names, meta, titles)


def biography_languages() -> tuple[str, ...]:
    """The tags with their own prompt for biographies: Kang et al.'s 19, sorted."""
    return tuple(sorted(default_prompts("biography")["languages"]))


def biographies(
    people: Iterable[NamedPerson | FailedRow],
    languages: Sequence[str] | None = None,
    *,
    references: Mapping[tuple[str, str], Reference] | None = None,
) -> Iterator[Sample | FailedRow]:
    """A prompt for every person in every language, as a query with an empty response.

    The design `runs` with five seeds gives Kang et al.'s five samples for each prompt.

    Args:
        people: rows that could not be read pass through.
        languages: BCP 47 tags; None for the 19 of Kang et al., which have their own prompts. Others get the English
            one.
        references: evidence by person and language; queries without one have no evidence, and detectors will report
            that.

    Yields:
        Queries, id `<person>-<language>`; a `FailedRow` if a person has no name in a language.
    """
    for person in people:
        if isinstance(person, FailedRow):
            yield person
            continue
        for tag in biography_languages() if languages is None else languages:
            name = person.name_in(tag)
            if name is None:
                yield FailedRow(f"{person.id} has no name in {tag}", field="names", id=f"{person.id}-{tag}")
                continue
            reference = (references or {}).get((person.id, tag))
            yield Sample(
                id=f"{person.id}-{tag}",
                response="",
                task=Task.BIOGRAPHY,
                language=tag,
                question=by_language("biography", tag).format(language=language_name(tag), name=name),
                evidence=(reference.evidence,) if reference is not None else (),
                meta={
                    "person": person.id,
                    "name": name,
                    "prompt": prompt_version("biography"),
                    **_meta_in(person, tag),
                },
            )


def _meta_in(person: NamedPerson, tag: str) -> dict[str, Any]:
    """The `meta` of the prompt in one language; of the page views only those of that language."""
    views = person.meta.get("views")
    own_views = views.get(tag, views.get(tag.partition("-")[0])) if isinstance(views, dict) else views
    return {key: value for key, value in {**person.meta, "views": own_views}.items() if value is not None}


# Checks of the queries that a model wrote: number, form, language. Every rejection has a reason and is written.


_Reason = Literal["unreadable", "number", "form", "duplicate", "language", "answerable"]

_FEWEST_LETTERS, _FEWEST_DENSE = 6, 4
_MOST_CODE_POINTS = 600
LIST_MARK = re.compile(r"^\s*(?:[-*•–]|\(?\d{1,2}[.):、]|[①②③④⑤⑥⑦⑧⑨])\s*")
_QUESTION_MARKS = "?？؟;՞፧"
_AROUND = " \t\"'“”„«»「」『』*"


class _WrittenQueries(Record):
    """Schema of the model's answer: the queries, in order."""

    queries: tuple[str, ...]


class _Rejection(Record, omit_defaults=True):
    """A rejected query, or one that is missing; `question` is the query, or else the reply."""

    id: str
    reference: str
    language: str
    reason: _Reason
    detail: str
    question: str = ""


def filter_queries(reference: Reference, reply: Reply, count: int) -> tuple[list[tuple[str, str]], list[_Rejection]]:
    """The queries in a reply that pass all checks without further calls, and rejections."""
    taken: list[tuple[str, str]] = []
    rejected = []

    def reject(number: int, reason: _Reason, detail: str, question: str = "") -> None:
        id_ = f"{reference.id}-q{number}"
        rejected.append(_Rejection(id_, reference.id, reference.language, reason, detail, question))

    candidates = _queries(reply)
    for number, question in enumerate(candidates, 1):
        if number > count:
            reject(number, "number", f"only {count} queries were asked for", question)
        elif trouble := _trouble(reference, question, [text for _, text in taken]):
            reject(number, *trouble, question)
        else:
            taken.append((f"{reference.id}-q{number}", question))
    for number in range(len(candidates) + 1, count + 1):
        if candidates:
            reject(number, "number", f"{count} queries were asked for, but the reply has {len(candidates)}")
        else:
            reject(number, "unreadable", "the reply has no queries", reply.text)
    return taken, rejected


def _queries(reply: Reply) -> list[str]:
    lines = listed(reply, _WrittenQueries)
    if lines is None:
        lines = [line.rstrip(" ,") for line in reply.text.splitlines() if any(mark in line for mark in _QUESTION_MARKS)]
        lines = [line for line in lines if not line.lstrip().startswith(("{", "["))]  # pieces of JSON are not queries
        if reply.finish == "length" and lines and not reply.text.rstrip().endswith(tuple(_QUESTION_MARKS)):
            lines = [line for line in lines if line.rstrip().endswith(tuple(_QUESTION_MARKS))]
    cleaned = (LIST_MARK.sub("", line).strip(_AROUND) for line in lines)
    return [line for line in cleaned if line]


def listed(reply: Reply, asked: type[msgspec.Struct]) -> list[str] | None:
    """The texts of a reply in JSON; None if there are none.

    Args:
        reply: the model's reply.
        asked: the requested schema, a record with one field; a bare list and another field name are accepted too.
    """
    for type_ in (asked, tuple[str, ...], dict[str, tuple[str, ...]]):
        with suppress(AnswerError):
            answer: Any = reply.decode(type_)
            lists = list(answer.values()) if isinstance(answer, dict) else [answer]
            lists = list(msgspec.structs.astuple(answer)) if isinstance(answer, msgspec.Struct) else lists
            return list(lists[0]) if len(lists) == 1 else None
    return None


def _trouble(reference: Reference, question: str, before: list[str]) -> tuple[_Reason, str] | None:
    # a character may be a syllable or a word
    dense = sum("\u3040" <= char <= "\u9fff" or "\uac00" <= char <= "\ud7a3" for char in question)
    if sum(map(str.isalpha, question)) < _FEWEST_LETTERS and dense < _FEWEST_DENSE:
        return "form", "it is too short to be a question"
    if len(question) > _MOST_CODE_POINTS:
        return "form", f"it is longer than {_MOST_CODE_POINTS} code points"
    if any(fold(question) == fold(other) for other in before):
        return "duplicate", "it was asked before"
    language = identify(question)
    if language is not None and not same_language(language.tag, reference.language, similar=True):
        return "language", f"it is in {language.tag} and should be in {reference.language}"
    return None


class Author(LanguageModel):
    """The model that writes the queries.

    Attributes:
        count: queries for each reference (mFAVA: two).
    """

    count: int = 2

    def request(self, reference: Reference) -> Request:
        """The request for queries on a reference, as JSON."""
        tag, title, text = reference.language, reference.title, reference.text
        return self.asked(
            filled("queries", "write", tag, title=title, text=text, count=self.count), answer=_WrittenQueries
        )


class _Drafts(Record):
    """The result for one reference, a row of the stage: its queries and rejections."""

    id: str
    samples: tuple[Sample, ...] = msgspec.field(name="queries")
    rejections: tuple[_Rejection, ...] = ()


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
        output: JSON lines of samples with an empty response; rejections go to `rejected_path(output)`. Both are made at
            the end from `OUT.rows.jsonl`, from which an interrupted run continues.
        references: the same ones in the same order at each call.
        author: the model that writes them.
        client: for all calls, including those of the check.
        check: whether a query can be answered; None accepts them unchecked, with a note in their `meta`.
        jobs: calls at the same time.
        run: see `RunOptions`.

    Returns:
        Counts of the references. A reference whose calls failed is a failed row.

    Raises:
        UsageError: the output was begun with other settings.
        ModelError: an error that every further call would have too.
    """
    return generate(
        output,
        references,
        lambda rows: run_conversations(client, rows, lambda reference: _drafts(reference, author, check), jobs=jobs),
        signature=client.signature,
        settings={
            **author.described,
            "count": author.count,
            "prompt": prompt_version("queries"),
            "check": check.signature if check is not None else None,
        },
        record_type=_Drafts,
        **run,
    )


def _drafts(
    reference: Reference, author: Author, check: AnswerabilityCheck | None
) -> Generator[tuple[Request, ...], list[Reply], _Drafts]:
    """The dialogue about one reference: accepted queries and all rejections, in the order of their numbers."""
    (reply,) = yield (author.request(reference),)
    accepted, rejected = filter_queries(reference, reply, author.count)
    verdicts: list[dict[str, Any] | str | None] = [None] * len(accepted)
    if check is not None:
        replies = yield tuple(check.request(reference, question) for _, question in accepted)
        pairs = zip(accepted, replies, strict=True)
        verdicts = [check.verdict(reference, question, reply) for (_, question), reply in pairs]
    samples = []
    for (id_, question), verdict in zip(accepted, verdicts, strict=True):
        if isinstance(verdict, str):
            rejected.append(_Rejection(id_, reference.id, reference.language, "answerable", verdict, question))
            continue
        checks = {
            "language": "identified" if identify(question) is not None else "not identified",
            "answerable": "not checked" if verdict is None else "checked",
            **(verdict or {}),
        }
        meta = {**reference.meta, "reference": reference.id, "checks": checks}
        samples.append(msgspec.structs.replace(_sample(reference, question), id=id_, meta=meta))
    return _Drafts(reference.id, tuple(samples), tuple(sorted(rejected, key=lambda rejection: rejection.id)))
