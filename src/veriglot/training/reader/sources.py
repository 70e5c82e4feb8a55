"""Published data sets of labelled sentence pairs and of answered questions, as training rows.

`sources.toml` describes the format of each. A label is for a whole response. The wrong words are found by comparison
with a similar right text: the evidence, a right response about the same evidence, or the reference that the response
was edited from.
"""

from __future__ import annotations

import csv
import hashlib
import re
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from veriglot.errors import InputError
from veriglot.plugins import read_package_data
from veriglot.records.settings import StrictRecord
from veriglot.text.normalization import fold
from veriglot.text.segmentation import sentences, words
from veriglot.training.grounding.examples import Answer, Example, Mark, share_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

__all__ = ["Row", "is_source", "read_answers", "read_parallel", "read_sources", "read_unanswerable"]


@dataclass(frozen=True)
class Row:
    """One training response.

    Attributes:
        example: response, evidence and marks.
        unsupported: whether anything in the response is unsupported; None if unknown.
        located: whether `marks` are complete, so that all words have labels; else only `unsupported` is known.
        twin: common id of a right and a wrong answer that differ little; else None.
    """

    example: Example
    unsupported: bool | None
    located: bool
    twin: str | None = None


class _Files(StrictRecord):
    """Files of one data set by a glob pattern in its folder; their language, or a pattern that finds it in the name."""

    files: str
    language: str | None = None
    language_in_name: str | None = None

    def paths(self, folders: Sequence[Path]) -> list[tuple[Path, str]]:
        """The files in order, each with its language."""
        set_name = self.files.partition("/")[0]
        paths = [path for folder in folders if folder.name == set_name for path in folder.parent.glob(self.files)]
        return [(path, self.language or _in_name(self.language_in_name, path)) for path in sorted(paths)]


class _Pairs(_Files, kw_only=True):
    """A data set of sentence pairs: its fields and labels; `symmetric` if either sentence can be the evidence."""

    format: Literal["tsv", "csv", "jsonl", "json"]
    premise: str
    hypothesis: str
    reference: str | None = None
    label: str | None = None
    supported: tuple[str, ...] = ()
    unsupported: tuple[str, ...] = ()
    group: str | None = None
    columns: tuple[str, ...] = ()
    limit: int | None = None
    symmetric: bool = False
    calibrates: bool = False  # held out, see `Example.kind`


class _Questions(_Files, kw_only=True):
    passage_language_in_name: str | None = None


class _Sources(StrictRecord):
    pairs: dict[str, _Pairs]
    answers: dict[str, _Questions]


def is_source(folder: Path) -> bool:
    """Whether a folder has the name of one of the data sets."""
    known = _sources()
    return folder.name in {files.files.partition("/")[0] for files in (*known.pairs.values(), *known.answers.values())}


@cache
def _sources() -> _Sources:
    return read_package_data(__package__, "sources.toml", _Sources)


def _in_name(pattern: str | None, path: Path) -> str:
    match = re.search(pattern or "", path.name)
    return match[1] if match and match.re.groups else "und"


# Sentence pairs.


class _Pair(NamedTuple):
    """A response with its evidence; `reference` is the right text that the response was made from."""

    language: str
    passages: tuple[str, ...]
    response: str
    unsupported: bool
    group: str
    reference: str | None


def read_sources(folders: Sequence[Path], seed: int) -> Iterator[Row]:
    """The rows of all data sets of sentence pairs in the given folders.

    Args:
        folders: of the data sets, by their names in `sources.toml`; others are ignored.
        seed: for sampling rows of large data sets, and for the choice of the evidence in symmetric pairs.

    Raises:
        InputError: a file is not in the published format of its data set.
    """
    for name, pairs in _sources().pairs.items():
        distinct = list(dict.fromkeys(_read_pairs(folders, name, pairs, seed)))
        if pairs.limit is not None:
            distinct = sorted(distinct, key=lambda pair: share_of(f"{seed} {pair.response} {pair.passages}"))
        for row in _rows(name, distinct[: pairs.limit], pairs.symmetric):
            yield replace(row, example=replace(row.example, kind="calibrating")) if pairs.calibrates else row


def _read_pairs(folders: Sequence[Path], name: str, pairs: _Pairs, seed: int) -> Iterator[_Pair]:
    for path, language in pairs.paths(folders):
        with _published(path):
            records = list(_records(path, pairs))
            texts = [[_texts(record, field) for field in (pairs.premise, pairs.hypothesis)] for record in records]
        for record, (premises, responses) in zip(records, texts, strict=True):
            passages = tuple(premises)
            response = responses[0] if responses else ""
            label = str(record.get(pairs.label)) if pairs.label else None
            if not passages or not response or label not in {None, *pairs.supported, *pairs.unsupported}:
                continue
            group = next(iter(_texts(record, pairs.group or pairs.premise)), response)
            group = f"{name}:{group if len(group) < _LONG_GROUP else _digest(group)}"
            unsupported = label not in pairs.supported
            reference = next(iter(_texts(record, pairs.reference)), None) if pairs.reference else None
            if pairs.symmetric:
                if unsupported and _folded(passages[0], language) == _folded(response, language):
                    continue  # the two sentences are equal, so the label is wrong
                if share_of(f"{seed} {group}") < 0.5:
                    passages, response = (response,), passages[0]
            pair = _Pair(language, passages, response, unsupported, group, reference)
            if label is None and reference is not None:
                yield pair._replace(response=reference, unsupported=False)
            yield pair


@contextmanager
def _published(path: Path) -> Iterator[None]:
    """Turn exceptions about another format into an InputError."""
    try:
        yield
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, csv.Error, msgspec.MsgspecError) as error:
        raise InputError(
            f"{path} is not in the published format of its set: {error!r}.",
            remedy="Give the folder of the set as it was published, or leave it out.",
        ) from error


_LONG_GROUP = 80  # code points; longer ones are replaced by their digest
_MISSING = frozenset({"", "NS"})  # PAWS-X has NS for a sentence that was not translated


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _records(path: Path, pairs: _Pairs) -> Iterator[dict[str, Any]]:
    """The records of a file; a row with too few or too many columns has no label, or another column in its place."""
    if pairs.format == "csv":
        with path.open(encoding="utf-8-sig", newline="") as file:
            yield from csv.DictReader(file)
        return
    if pairs.format == "json":
        yield from msgspec.json.decode(path.read_bytes())
        return
    lines = [line for line in path.read_text("utf-8-sig").split("\n") if line.strip()]
    if pairs.format == "jsonl":
        yield from map(msgspec.json.decode, lines)
        return
    table = [[_unquoted(field) for field in line.split("\t")] for line in lines]
    header = list(pairs.columns) or table.pop(0)
    for number, fields in enumerate(table):
        yield {"row": number, **dict(zip(header, fields, strict=False))}


def _unquoted(field: str) -> str:
    """A field without the quotation marks that some data sets leave around fields with quotation marks."""
    quoted = len(field) > 1 and field[0] == field[-1] == '"' and '""' in field[1:-1]
    return field[1:-1].replace('""', '"') if quoted else field


def _texts(record: dict[str, Any], field: str) -> list[str]:
    """The texts at a path, without missing ones."""
    values: list[Any] = [record]
    for step in field.split("/"):
        items = [item for value in values for item in (value if isinstance(value, list) else [value])]
        values = [item[int(step)] if isinstance(item, list) else item.get(step) for item in items]
    flat = [item for value in values for item in (value if isinstance(value, list) else [value])]
    return [text for text in (str(item).strip() for item in flat if item is not None) if text not in _MISSING]


def _rows(name: str, pairs: list[_Pair], symmetric: bool) -> Iterator[Row]:
    right = defaultdict(list)
    for pair in pairs:
        if not pair.unsupported:
            right[pair.passages].append(pair.response)
    drafts = [(pair, *_located(pair, right[pair.passages], symmetric)) for pair in pairs]
    twins = {(pair.passages, reference) for pair, marks, reference in drafts if marks is not None and pair.unsupported}
    for pair, marks, reference in drafts:
        sibling = (pair.passages, reference if reference is not None else pair.response)
        twin = f"{pair.group}:{_digest(sibling[1])}" if sibling in twins else None
        example = Example(
            "wrong" if pair.unsupported else "clean", name, pair.group, pair.language, pair.response, pair.passages,
            marks=marks or (),
        )  # fmt: skip
        yield Row(example, pair.unsupported, marks is not None, twin)


# Which words are wrong, by the difference to a right text.


_ALIKE = 0.75  # minimum share of common words (`SequenceMatcher.ratio`) of similar texts
_ALIKE_EDITED = 0.5  # the same for an edit of a known text, which may have many edits
_RUNS = 2
_RUN = 4  # words


def _located(pair: _Pair, right: list[str], symmetric: bool) -> tuple[tuple[Mark, ...] | None, str | None]:
    """The wrong words (none in a right response, None if unknown), and the similar right response."""
    if not pair.unsupported:
        return (), pair.reference
    if pair.reference is not None:
        return _edits(pair.response, pair.reference, pair.language), pair.reference
    passage = " ".join(pair.passages)
    marks = _moved(pair.response, passage, pair.language)
    if marks is None and not symmetric:  # other words may be a paraphrase
        marks = _few_changes(pair.response, passage, pair.language)
        for response in right if marks is None else ():
            marks = _few_changes(pair.response, response, pair.language)
            if marks is not None:
                return marks, response
    return marks, None


def _folded(text: str, language: str) -> list[str]:
    return [fold(text[start:end]) for start, end in words(text, language)]


def _runs(text: str, language: str, spans: Iterable[tuple[int, int]]) -> tuple[Mark, ...]:
    """Ranges of words, half-open, as marks."""
    bounds = words(text, language)
    return tuple(Mark(bounds[first][0], bounds[last - 1][1]) for first, last in spans)


def _edits(response: str, reference: str, language: str) -> tuple[Mark, ...] | None:
    """The words of an edited text that differ from its reference; None if the edits only removed words."""
    matcher = SequenceMatcher(None, _folded(reference, language), _folded(response, language), autojunk=False)
    new = [(op[3], op[4]) for op in matcher.get_opcodes() if op[0] in {"replace", "insert"}]
    if not new or matcher.ratio() < _ALIKE_EDITED:
        return None
    return _runs(response, language, new)


def _few_changes(response: str, right: str, language: str) -> tuple[Mark, ...] | None:
    """One or two short runs of words that differ in `right`; None if there are more, or if words were removed."""
    matcher = SequenceMatcher(None, _folded(right, language), _folded(response, language), autojunk=False)
    if matcher.real_quick_ratio() < _ALIKE or matcher.ratio() < _ALIKE:
        return None
    changes = [op for op in matcher.get_opcodes() if op[0] != "equal"]
    short = all(op[0] != "delete" and max(op[2] - op[1], op[4] - op[3]) <= _RUN for op in changes)
    if not short or not 0 < len(changes) <= _RUNS:
        return None
    return _runs(response, language, ((op[3], op[4]) for op in changes))


def _moved(response: str, right: str, language: str) -> tuple[Mark, ...] | None:
    """The words that changed places, if the two texts have the same words in another order; else None.

    If two parts were exchanged, both are marked; in other cases, the words that `right` has elsewhere.
    """
    new, old = _folded(response, language), _folded(right, language)
    if new == old or sorted(new) != sorted(old):
        return None
    first = next(index for index, pair in enumerate(zip(new, old, strict=True)) if pair[0] != pair[1])
    last = len(new) - next(i for i, pair in enumerate(zip(new[::-1], old[::-1], strict=True)) if pair[0] != pair[1])
    new, old = new[first:last], old[first:last]
    size = len(new)
    for head in range(1, size):
        for tail in range(1, size - head + 1):
            exchanged = new[:head] == old[size - head :] and new[size - tail :] == old[:tail]
            if exchanged and new[head : size - tail] == old[tail : size - head]:
                return _runs(response, language, ((first, first + head), (last - tail, last)))
    codes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    moved = [(op[3] + first, op[4] + first) for op in codes if op[0] in {"replace", "insert"}]
    if sum(end - start for start, end in moved) > _RUNS * _RUN:
        return None  # the whole sentence was reordered
    return _runs(response, language, moved)


# Answered questions.


class _Question(NamedTuple):
    """A question about a passage; `answers` as published, with their start offsets."""

    language: str
    passage_language: str
    title: str | None
    passage: str
    question: str
    id: str
    answers: list[tuple[str, int]]


def read_answers(folders: Sequence[Path]) -> Iterator[Answer]:
    """Right answers with their passages; a passage that is too long is shortened around its answer.

    If the question is in another language than the passage, the answer comes from the same question on a passage of its
    language, if the data set has that; else it stays in the passage's language.

    Args:
        folders: of the data sets, by their names in `sources.toml`; others are ignored.

    Raises:
        InputError: a file is not in the published format of its data set.
    """
    for source in _sources().answers.values():
        questions = list(_read_questions(folders, source))
        own = {(q.id, q.language): q.answers[0][0] for q in questions if q.language == q.passage_language and q.answers}
        for question in questions:
            span = next(filter(None, (_span(question.passage, *answer) for answer in question.answers)), None)
            if span is None:
                continue
            answer = Answer(
                question.passage_language,
                _cut(question.passage, span, question.passage_language),
                question.question,
                question.passage[slice(*span)],
            )
            text = own.get((question.id, question.language)) if question.language != answer.language else None
            yield answer if text is None else replace(answer, language=question.language, text=text)


def read_parallel(folders: Sequence[Path]) -> Iterator[Answer]:
    """Right answers of data sets whose questions have the same ids in several languages, each in its language.

    Args:
        folders: of the data sets, by their names in `sources.toml`; others are ignored.

    Raises:
        InputError: a file is not in the published format of its data set.
    """
    for source in _sources().answers.values():
        for question in _read_questions(folders, source) if source.passage_language_in_name else ():
            if question.answers and question.language == question.passage_language:
                yield Answer(
                    question.language, question.passage, question.question, question.answers[0][0], question.id,
                    question.title,
                )  # fmt: skip


def read_unanswerable(folders: Sequence[Path]) -> Iterator[tuple[str, str, str, str]]:
    """Questions that their passage does not answer: language, passage, question and group.

    Args:
        folders: of the data sets, by their names in `sources.toml`; others are ignored.
    """
    for name, source in _sources().answers.items():
        for question in _read_questions(folders, source):
            if not question.answers:
                article = question.title or _digest(question.passage)
                passage = _cut(question.passage, (0, 1), question.passage_language)
                yield question.language, passage, question.question, f"{name}:{article}"


def _read_questions(folders: Sequence[Path], source: _Questions) -> Iterator[_Question]:
    for path, language in source.paths(folders):
        of_passage = source.passage_language_in_name
        passage_language = _in_name(of_passage, path) if of_passage else language
        with _published(path):
            yield from list(_squad(path, language, passage_language))


def _squad(path: Path, language: str, passage_language: str) -> Iterator[_Question]:
    for article in msgspec.json.decode(path.read_bytes())["data"]:
        for paragraph in article["paragraphs"]:
            for entry in paragraph["qas"]:
                listed = [] if entry.get("is_impossible") else entry["answers"]
                answers = [(answer["text"].strip(), int(answer["answer_start"])) for answer in listed]
                yield _Question(
                    language, passage_language, article.get("title"), paragraph["context"], entry["question"],
                    str(entry["id"]), answers,
                )  # fmt: skip


def _span(passage: str, text: str, start: int) -> tuple[int, int] | None:
    """The range of an answer: at its published offset, or its first occurrence, because some offsets are wrong."""
    if not passage.startswith(text, start):
        start = passage.find(text)
    return (start, start + len(text)) if text and start >= 0 else None


_LONGEST = 3000  # code points of a passage


def _cut(passage: str, span: tuple[int, int], language: str) -> str:
    """The sentences around a span that fit; at least those that contain the span."""
    if len(passage) <= _LONGEST:
        return passage
    bounds = sentences(passage, language)
    inside = [index for index, (start, end) in enumerate(bounds) if start < span[1] and span[0] < end]
    first, last = inside[0], inside[-1]
    grown = True
    while grown:
        grown = False
        if first > 0 and bounds[last][1] - bounds[first - 1][0] <= _LONGEST:
            first, grown = first - 1, True
        if last + 1 < len(bounds) and bounds[last + 1][1] - bounds[first][0] <= _LONGEST:
            last, grown = last + 1, True
    return passage[bounds[first][0] : bounds[last][1]]
