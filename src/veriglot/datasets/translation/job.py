"""The translation job: samples are split, translated, joined and get their spans, in several languages at once.

mFAVA (section 4.1) translated FAVA's training set with NLLB and projected the spans onto tokens. The paper does not
describe lost spans; here each span has a position with a quality, or is counted as dropped. This module does not
translate: the work on a row yields the texts that it needs next, so that the translator gets texts of many rows
together.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Unpack

import msgspec
from msgspec.structs import asdict, replace

from veriglot.datasets.generation import RunOptions, UsageFields, converse, generate, ranked
from veriglot.datasets.translation.projection import STRATEGIES, Aligner, PlacedMark, Range, Strategy, best_of, side_of
from veriglot.datasets.translation.translators import (
    Translation,
    TranslationRequest,
    Translator,
    Unfit,
    add_markers,
    read_translation,
)
from veriglot.errors import UnknownNameError, UsageError, VeriglotError
from veriglot.formats.tags import in_order
from veriglot.records import Evidence, Kind, Sample, Span, Task, Unit
from veriglot.records.languages import find_language, get_language
from veriglot.records.settings import Record, check_ranges
from veriglot.storage.checkpoint import FailedRow, Tally, Usage
from veriglot.text.identification import identify
from veriglot.text.segmentation import sentences, space_of
from veriglot.text.unicode import trimmed

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    _Work = Generator[list[TranslationRequest], list[Translation], "_TranslatedRow | FailedRow"]

__all__ = ["TranslationLanguage", "TranslationSettings", "translate"]

_METHOD_VERSION = "2"  # raise it when other translations are accepted, or spans go to other positions
_BLOCK = 32
_FLAG = "spans_dropped"
_OF_THE_TEXT = {"samples", "silver"}  # keys of `meta` with texts or offsets of the original


Around = Literal["translate", "keep"]
Dropped = Literal["aside", "keep"]


class TranslationSettings(Record):
    """Settings of the translation.

    Attributes:
        strategies: for the projection of spans; the best result is taken, span by span.
        threshold: quality, 0 to 1, below which a span is dropped.
        dropped: for a row that lost a span: it is rejected (`aside`), or it is kept with the remaining spans and the
            flag `spans_dropped`. A row that lost all spans of an annotation is always rejected, because it would look
            clean.
        evidence, question: whether they are translated too, or stay in their language.
        attempts: maximum number of attempts for a text if the translator varies, at least 1.
    """

    strategies: tuple[Strategy, ...] = ("tags", "spans", "align")
    threshold: float = 0.5
    dropped: Dropped = "aside"
    evidence: Around = "translate"
    question: Around = "translate"
    attempts: int = 2


class MarkAccount(Record):
    """The marks (spans and labelled units) of one type.

    Attributes:
        asked: marks of the rows whose texts could be translated.
        dropped: those of them without a position of sufficient quality.
        quality: mean quality of the other ones, 0 to 1; None if there are none.
        ways: number of those by strategy; `sentence` are marks of whole sentences.
    """

    asked: int
    dropped: int
    quality: float | None
    ways: dict[str, int]

    @property
    def drop_rate(self) -> float | None:
        """The share of dropped marks, 0 to 1; None if there were no marks."""
        return self.dropped / self.asked if self.asked else None


class TranslationLanguage(UsageFields):
    """One language, or all of them.

    Attributes:
        rows: processed samples, without failed ones; these are in `Account.failed`.
        translated: those that were translated.
        partial: those of them that lost a span.
        types: marks by type.
        row_reasons: rejected rows, by reason.
        reply_reasons: rejected translations, by kind of text and reason; a text with another accepted translation is
            counted too.
    """

    rows: int
    translated: int = msgspec.field(name="kept")
    partial: int
    types: dict[str, MarkAccount]
    row_reasons: dict[str, int]
    reply_reasons: dict[str, dict[str, int]]

    @property
    def marks(self) -> MarkAccount:
        """The marks of all types."""
        asked = sum(account.asked for account in self.types.values())
        dropped = sum(account.dropped for account in self.types.values())
        total = sum((account.quality or 0.0) * (account.asked - account.dropped) for account in self.types.values())
        ways = Counter[str]()
        for account in self.types.values():
            ways.update(account.ways)
        return MarkAccount(asked, dropped, total / (asked - dropped) if asked > dropped else None, dict(ways))


class _Task(Record):
    """A sample for the language `target`; its response is in `source`, empty if it cannot be detected."""

    id: str
    sample: Sample
    source: str
    target: str


class _MarkCount(Record):
    """The result for a span or unit: its type or label; without a position, quality 0 and no strategy."""

    type: str
    placed: bool = msgspec.field(name="kept")
    quality: float
    way: str | None


class _Rejection(Record, omit_defaults=True):
    """A rejected row (`what` is `row`), or a rejected reply: its kind of text, and the reason."""

    id: str
    sample: str
    language: str
    what: str
    reason: str
    detail: str
    attempt: int = 1
    text: str = ""


class _TranslatedRow(UsageFields):
    """The result of a task; without a sample if the row was rejected."""

    id: str
    language: str
    samples: tuple[Sample, ...]
    rejections: tuple[_Rejection, ...]
    marks: tuple[_MarkCount, ...]


class _Counts:
    def __init__(self) -> None:
        self.usage = Usage()
        self._rows = Counter[str]()
        self._marks = Counter[str]()
        self._quality = defaultdict[str, float](float)
        self._ways = defaultdict[str, Counter[str]](Counter)
        self._reasons = defaultdict[str, Counter[str]](Counter)

    def add(self, row: _TranslatedRow) -> None:
        self._rows["rows"] += 1
        self._rows["translated"] += len(row.samples)
        self._rows["partial"] += bool(row.samples) and not all(mark.placed for mark in row.marks)
        for mark in row.marks:
            self._marks[mark.type] += 1
            if mark.placed:
                self._quality[mark.type] += mark.quality
                self._ways[mark.type][mark.way or ""] += 1
        for rejection in row.rejections:
            self._reasons[rejection.what][rejection.reason] += 1

    def account(self) -> TranslationLanguage:
        types = {}
        for type_, marks in sorted(self._marks.items()):
            ways = self._ways[type_]
            mean = self._quality[type_] / ways.total() if ways else None
            types[type_] = MarkAccount(marks, marks - ways.total(), mean, ranked(ways))
        return TranslationLanguage(
            self._rows["rows"],
            self._rows["translated"],
            self._rows["partial"],
            types,
            ranked(self._reasons["row"]),
            {what: ranked(reasons) for what, reasons in sorted(self._reasons.items()) if what != "row"},
            **asdict(self.usage),
        )


def translate(
    output: Path,
    samples: Iterable[Sample | FailedRow],
    targets: Sequence[str],
    translator: Translator,
    *,
    aligner: Aligner | None = None,
    settings: TranslationSettings | None = None,
    block: int = _BLOCK,
    **run: Unpack[RunOptions],
) -> Tally:
    """Translate every sample into every target.

    Args:
        output: JSON lines of samples; their annotations are of the kind `model`, whoever marked the original. Rejected
            rows and replies go to `rejected_path(output)`, the account to `account_path(output)`. All are made at the
            end from `OUT.rows.jsonl`, from which an interrupted run continues.
        samples: the same ones in the same order at each call.
        targets: BCP 47 tags or names.
        translator: the translator.
        aligner: for the strategy `align`; None skips it.
        settings: None for the defaults.
        block: rows that are processed together.
        run: see `RunOptions`.

    Returns:
        Counts of the rows. A rejected row is done; one whose calls failed is a failed row.

    Raises:
        UsageError: no target or the same one twice, no strategy, a threshold outside 0 to 1, fewer than one attempt, or
            the output was begun with other settings.
        UnknownNameError: no such language or strategy.
        VeriglotError: any exception of the translator; finished rows are kept.
    """
    settings = settings or TranslationSettings()
    tags = tuple(get_language(target).tag for target in targets)
    if not tags or len(set(tags)) < len(tags):
        raise UsageError("Name at least one target, each once.")
    for strategy in settings.strategies:
        if strategy not in STRATEGIES:
            raise UnknownNameError("strategy", strategy, STRATEGIES)
    if not settings.strategies or (settings.strategies == ("align",) and aligner is None):
        raise UsageError("No strategy is left that could place a span.", "Name tags, spans, or an aligner.")
    check_ranges(settings, threshold=(0, 1), attempts=(1, math.inf))
    return generate(
        output,
        _tasks(samples, tags),
        lambda tasks: converse(
            tasks,
            lambda task: _RowJob(task, settings, translator, aligner).run(),
            partial(_translations_of, translator),
            block=block,
        ),
        signature=translator.signature,
        settings={
            "targets": ",".join(tags),
            "settings": settings,
            "aligner": aligner.signature if aligner is not None else None,
            "method": f"translating@{_METHOD_VERSION}",
        },
        maker="translator",
        record_type=_TranslatedRow,
        counts=_Counts,
        **run,
    )


def _tasks(samples: Iterable[Sample | FailedRow], targets: Sequence[str]) -> Iterator[_Task | FailedRow]:
    """Every sample with every target. A missing language is detected from the response, if possible."""
    for sample in samples:
        if isinstance(sample, FailedRow):
            yield sample
            continue
        if sample.language:
            entry = find_language(sample.language)
            source = entry.tag if entry is not None else sample.language
        else:
            identified = identify(sample.response)
            source = identified.tag if identified is not None else ""
        for target in targets:
            yield _Task(f"{sample.id}/{target}", sample, source, target)


def _translations_of(translator: Translator, requests: list[TranslationRequest]) -> list[Translation]:
    """The translations of texts; equal texts are translated once, and the first of them has the cost."""
    distinct = list(dict.fromkeys(requests))
    replies = list(translator.translate(distinct)) if distinct else []
    if len(replies) != len(distinct):
        raise VeriglotError(f"The translator gave {len(replies)} translations of {len(distinct)} texts.")
    by_request = dict(zip(distinct, replies, strict=True))
    translations = []
    for request in requests:
        translations.append(by_request[request])
        by_request[request] = replace(by_request[request], usage=Usage())
    return translations


class _Order(msgspec.Struct):
    """A request for the translation of a text of a row.

    `what` is `response`, `tags`, `span`, `evidence` or `question`; `sent` is `plain` with `marks` markers. At the end
    it has an accepted translation with the `spans` of its markers, or the `fault` of the last reply.
    """

    what: str
    tag: str
    plain: str
    sent: str
    marks: int = 0
    translation: str | None = None
    spans: tuple[Range, ...] = ()
    fault: Unfit | None = None


class _Piece(msgspec.Struct):
    """A part of a text for one translation, with the parts of marks in it, and the marks that these belong to.

    `orders` are the requests for its translation, those with markers first.
    """

    text: str
    start: int
    marks: list[Range] = []
    owners: list[int] = []
    orders: list[_Order] = []

    @property
    def has_words(self) -> bool:
        return any(map(str.isalnum, self.text))


def _pieces(text: str, tag: str, marks: Sequence[Range], *, by_sentence: bool) -> list[_Piece]:
    """A text split into sentences, or as a whole; parts of a mark without a word are left out."""
    if by_sentence:
        bounds = sentences(text, tag)
    else:
        start, end = trimmed(text, 0, len(text))
        bounds = [(start, end)] if start < end else []
    pieces = [_Piece(text[start:end], start) for start, end in bounds]
    for piece in pieces if marks else ():
        side = side_of(piece.text, tag)
        for number, (start, end) in enumerate(marks):
            part = (max(start - piece.start, 0), min(end - piece.start, len(piece.text)))
            if part[0] < part[1] and side.inside(part):
                piece.marks.append(part)
                piece.owners.append(number)
    return pieces


def _joined(text: str, pieces: Sequence[_Piece], translations: Sequence[str], tag: str) -> tuple[str, list[int]]:
    """The translation of a text from those of its pieces, and the offset of each piece in it.

    A space between two sentences is replaced by that of the target language; other white space is unchanged.
    """
    parts: list[str] = []
    starts: list[int] = []
    length = end = 0
    for piece, translation in zip(pieces, translations, strict=True):
        between = text[end : piece.start]
        if not between.strip() and "\n" not in between and starts:
            between = space_of(tag)
        parts += (between, translation)
        starts.append(length + len(between))
        length = starts[-1] + len(translation)
        end = piece.start + len(piece.text)
    return "".join((*parts, text[end:])), starts


class _RowJob:
    """Translates one sample: `run` yields the texts that it needs next, gets their translations, returns the row."""

    def __init__(
        self, task: _Task, settings: TranslationSettings, translator: Translator, aligner: Aligner | None
    ) -> None:
        self._task, self._settings, self._translator = task, settings, translator
        self._aligner = aligner if "align" in settings.strategies else None
        self._rejections: list[_Rejection] = []
        self._counts: list[_MarkCount] = []
        self._usage = Usage()
        self._orders: dict[tuple[str, str], _Order] = {}  # by language and text

    def run(self) -> _Work:
        fault = self._hopeless()
        if fault is not None:
            self._reject("row", fault)
            return self._row()
        self._plan()
        for attempt in range(1, (self._settings.attempts if self._translator.varies else 1) + 1):
            due = [order for order in self._orders.values() if order.translation is None]
            if not due:
                break
            target = self._task.target
            replies = yield [TranslationRequest(o.sent, o.tag, target, o.marks > 0, attempt) for o in due]
            self._usage = sum((reply.usage for reply in replies), self._usage)
            for order, reply in zip(due, replies, strict=True):
                if reply.unfit == "no_reply":
                    return FailedRow(reply.detail, id=self._task.id, **asdict(self._usage))
                result = read_translation(reply, order.plain, order.marks, order.tag, target)
                if isinstance(result, Unfit):
                    order.fault = result
                    self._reject(order.what, result, attempt=attempt, text=reply.text)
                else:
                    order.fault, order.translation, order.spans = None, *result
        return self._row(*filter(None, [self._sample()]))

    def _hopeless(self) -> Unfit | None:
        """Why there is nothing to translate."""
        task = self._task
        if not task.source:
            return Unfit("unknown_language", "the language of the response cannot be identified")
        if task.source == task.target:
            return Unfit("same_language", "the response is in that language already")
        if not any(map(str.isalnum, task.sample.response)):
            return Unfit("no_text", "the response holds no words")
        return None

    def _row(self, *samples: Sample) -> _TranslatedRow:
        rejections, counts = tuple(self._rejections), tuple(self._counts)
        return _TranslatedRow(self._task.id, self._task.target, samples, rejections, counts, **asdict(self._usage))

    def _texts_around(self) -> Iterator[tuple[str, str, str]]:
        """The other texts of the row that will be translated too: kind, language, text."""
        sample, source, target = self._task.sample, self._task.source, self._task.target
        if self._settings.evidence == "translate" and sample.task != Task.TRANSLATION:
            for passage in sample.evidence:
                tag = passage.language or source
                for text in (passage.text, passage.title or ""):
                    if text.strip() and tag != target:
                        yield "evidence", tag, text
        if self._settings.question == "translate" and sample.question and sample.question.strip():
            yield "question", source, sample.question

    def _plan(self) -> None:
        """Plan all requests that the strategies need."""
        layers = self._task.sample.annotations
        spans = {(mark.start, mark.end) for layer in layers for mark in layer.spans or ()}
        units = {(mark.start, mark.end) for layer in layers for mark in layer.units or ()}
        self._marks = sorted(spans | units)
        cut = partial(_pieces, by_sentence=self._translator.by_sentence)
        self._response = cut(self._task.sample.response, self._task.source, self._marks)
        self._around = {(tag, text): (what, cut(text, tag, ())) for what, tag, text in self._texts_around()}
        strategies = self._settings.strategies
        for piece in self._response:
            text = piece.text
            if not piece.has_words:
                continue
            sent = add_markers(text, piece.marks) if piece.marks and "tags" in strategies else None
            if isinstance(sent, str):
                piece.orders.append(self._order("tags", self._task.source, text, sent, len(piece.marks)))
            elif sent is not None:
                self._reject("tags", sent, text=text)
            if sent is None or strategies != ("tags",):
                piece.orders.append(self._order("response", self._task.source, text))
            if "spans" in strategies:
                whole = side_of(text, self._task.source).words
                for start, end in piece.marks:
                    if start > whole[0][0] or end < whole[-1][1]:
                        self._order("span", self._task.source, text[start:end].strip())
        for (tag, _), (what, pieces) in self._around.items():
            for piece in pieces:
                if piece.has_words:
                    piece.orders.append(self._order(what, tag, piece.text))

    def _order(self, what: str, tag: str, plain: str, sent: str | None = None, marks: int = 0) -> _Order:
        sent = sent or plain
        order = self._orders.setdefault((tag, sent), _Order(what, tag, plain, sent, marks))
        if order.what == "span" and what != "span":
            order.what = what  # a span that is also a sentence, where it is required
        return order

    def _reject(self, what: str, fault: Unfit, attempt: int = 1, text: str = "") -> None:
        task = self._task
        self._rejections.append(
            _Rejection(task.id, task.sample.id, task.target, what, fault.reason, fault.detail, attempt, text)
        )

    def _sample(self) -> Sample | None:
        """The translated sample; None, with a rejection, if the row is rejected."""
        missing = self._missing()
        if missing is not None:
            self._reject("row", missing)
            return None
        translations = []
        placed: dict[Range, list[tuple[int, PlacedMark]]] = {mark: [] for mark in self._marks}  # piece, position in it
        for number, piece in enumerate(self._response):
            text, places = self._placed(piece)
            translations.append(text)
            for owner, projected in zip(piece.owners, places, strict=True):
                placed[self._marks[owner]].append((number, projected))
        response, starts = _joined(self._task.sample.response, self._response, translations, self._task.target)
        return self._projected(
            response,
            {
                mark: _in_response(response, [(starts[n], projected) for n, projected in own])
                for mark, own in placed.items()
            },
        )

    def _missing(self) -> Unfit | None:
        """Why there is no row: a required translation is missing."""
        for piece in self._response:
            if piece.has_words and all(order.translation is None for order in piece.orders):
                faults = [order.fault for order in piece.orders if order.fault is not None]
                return faults[-1] if faults else Unfit("markers_in_text", "no strategy is left")
        for what, pieces in self._around.values():
            for order in (order for piece in pieces for order in piece.orders):
                if order.translation is None and order.fault is not None:
                    return Unfit(order.fault.reason, f"{what}: {order.fault.detail}")
        return None

    def _placed(self, piece: _Piece) -> tuple[str, list[PlacedMark]]:
        """The translation of a piece with the best positions of its marks, and these positions."""
        if not piece.has_words:
            return piece.text, []
        source = side_of(piece.text, self._task.source)
        apart = {}
        for start, end in piece.marks if "spans" in self._settings.strategies else ():
            order = self._orders.get((self._task.source, piece.text[start:end].strip()))
            if order is not None and order.translation is not None:
                apart[start, end] = order.translation
        best: tuple[str, list[PlacedMark]] | None = None
        for order in piece.orders:
            if order.translation is None:
                continue
            tagged = order.spans if order.marks else None
            side = side_of(order.translation, self._task.target)
            places = best_of(source, side, piece.marks, tagged=tagged, apart=apart, aligner=self._aligner)
            if best is None or _mean_quality(places) > _mean_quality(best[1]) + 1e-9:
                best = (order.translation, places)
        assert best is not None
        return best

    def _translated(self, tag: str, text: str | None) -> str | None:
        """The translation of another text of the row; the text itself if it stays in its language."""
        if text is None or (tag, text) not in self._around:
            return text
        _, pieces = self._around[tag, text]
        translations = [piece.orders[0].translation or "" if piece.orders else piece.text for piece in pieces]
        return _joined(text, pieces, translations, self._task.target)[0]

    def _projected(self, response: str, places: Mapping[Range, PlacedMark]) -> Sample | None:
        """The sample in its new language; None, with a rejection, if too many marks were dropped."""
        task = self._task
        notes: list[dict[str, Any]] = []
        annotations, emptied, lost = [], False, 0
        for layer in task.sample.annotations:
            spans, spans_lost = self._marks_of(layer.annotator, layer.spans, response, places, notes)
            units, units_lost = self._marks_of(layer.annotator, layer.units, response, places, notes)
            lost += spans_lost + units_lost
            emptied |= bool((layer.spans and not spans) or (layer.units and not units))
            dropped = spans_lost + units_lost and _FLAG not in layer.flags
            annotations.append(
                replace(
                    layer,
                    kind=Kind.MODEL,
                    spans=spans if layer.spans is not None else None,
                    units=units if layer.units is not None else None,
                    flags=(*layer.flags, _FLAG) if dropped else layer.flags,
                )
            )
        if lost and (emptied or self._settings.dropped == "aside"):
            detail = f"{lost} of {len(self._counts)} marks could not be placed well enough"
            self._reject("row", Unfit("spans_dropped", detail), text=response)
            return None
        carried = {key: value for key, value in task.sample.meta.items() if key not in _OF_THE_TEXT}
        translated = {
            "sample": task.sample.id,
            "language": task.source,
            "kinds": {layer.annotator: str(layer.kind) for layer in task.sample.annotations},
            "marks": notes,
            "translator": self._translator.signature,
            "aligner": self._aligner.signature if self._aligner is not None else None,
        }
        return replace(
            task.sample,
            id=task.id,
            response=response,
            language=task.target,
            question=self._translated(task.source, task.sample.question),
            evidence=tuple(map(self._evidence, task.sample.evidence)),
            annotations=tuple(annotations),
            meta={
                "group": task.sample.id,  # original and translation are in one group, so that no split separates them
                **carried,
                "translated": {key: value for key, value in translated.items() if value},
            },
        )

    def _marks_of(
        self,
        annotator: str,
        marks: Sequence[Span] | Sequence[Unit] | None,
        response: str,
        places: Mapping[Range, PlacedMark],
        notes: list[dict[str, Any]],
    ) -> tuple[tuple[Any, ...], int]:
        """The marks at their new positions in order, and the number of dropped ones; each is counted and noted."""
        moved: list[Span | Unit] = []
        dropped = 0
        for mark in marks or ():
            projected = places[mark.start, mark.end]
            parts = projected.parts if projected.quality >= self._settings.threshold else ()
            dropped += not parts
            type_ = mark.type if isinstance(mark, Span) else mark.label
            self._counts.append(_MarkCount(type_ or "", bool(parts), projected.quality, projected.way))
            notes.append(
                {
                    "annotator": annotator,
                    "from": [mark.start, mark.end],
                    "to": parts,
                    "quality": round(projected.quality, 4),
                    "way": projected.way,
                }
            )
            for part in parts:
                if isinstance(mark, Unit):
                    moved.append(Unit(*part, mark.label, mark.probability))
                    continue
                shown = response[slice(*part)] if mark.text is not None else None
                evidence = mark.evidence if self._settings.evidence == "keep" else ()  # else its offsets are invalid
                moved.append(Span(*part, mark.type, mark.confidence, shown, evidence))
        return tuple(in_order(dict.fromkeys(moved))), dropped

    def _evidence(self, passage: Evidence) -> Evidence:
        tag = passage.language or self._task.source
        text, title = self._translated(tag, passage.text), self._translated(tag, passage.title)
        language = self._task.target if (tag, passage.text) in self._around else tag
        return replace(passage, text=text, title=title, language=language)


def _mean_quality(places: Sequence[PlacedMark]) -> float:
    return sum(projected.quality for projected in places) / max(1, len(places))


def _in_response(text: str, placed: Sequence[tuple[int, PlacedMark]]) -> PlacedMark:
    """The position of a mark in a response of several pieces, no position if one of its pieces has none.

    `placed` has for each of its pieces the offset in the translation, and the position in the piece; the quality of a
    mark in several pieces is their mean.
    """
    places = [projected for _, projected in placed]
    if not all(projected.parts for projected in places) or not places:
        return PlacedMark()
    parts = _touching(text, [(at + start, at + end) for at, projected in placed for start, end in projected.parts])
    return PlacedMark(parts, _mean_quality(places), min(places, key=lambda projected: projected.quality).way)


def _touching(text: str, parts: Sequence[Range]) -> tuple[Range, ...]:
    """Parts in order; parts with only white space between them are merged."""
    merged: list[Range] = []
    for start, end in sorted(parts):
        if merged and not text[merged[-1][1] : start].strip():
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return tuple(merged)
