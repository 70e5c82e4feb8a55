"""The translation job: samples in segments, translated, joined and given their spans, several languages at once.

Nothing here translates: the work yields the texts that it needs next, so that those of many rows go to the translator
together (`batches.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from veriglot.datasets.generation import rejected_path
from veriglot.datasets.quality import is_repetitive
from veriglot.datasets.translation.alignment import side_of
from veriglot.datasets.translation.projection import STRATEGIES, MarkerFault, best_of, marked, unmarked, words_inside
from veriglot.datasets.translation.rows import (
    ProjectedResponse,
    Task,
    TranslatedRow,
    TranslationRejection,
    TranslationSettings,
    projected_sample,
    translation_account_of,
    translation_account_path,
)
from veriglot.datasets.translation.translators import TranslationRequest
from veriglot.errors import UnknownNameError, UsageError, VeriglotError
from veriglot.records import Sample, encode
from veriglot.records import Task as Kind
from veriglot.records.languages import find_language, get_language, same_language
from veriglot.storage.checkpoint import Checkpoint, FailedRow, failed_rows
from veriglot.storage.files import final_path, open_whole, write_json
from veriglot.text.identification import identify
from veriglot.text.noise import garbled
from veriglot.text.normalization import fold
from veriglot.text.segmentation import sentences, space_of, words
from veriglot.text.unicode import script_shares

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
    from pathlib import Path

    from veriglot.datasets.translation.alignment import Aligner
    from veriglot.datasets.translation.projection import PlacedMark
    from veriglot.datasets.translation.rows import MarkCount
    from veriglot.datasets.translation.translators import Translation, Translator
    from veriglot.storage.checkpoint import Tally

__all__ = ["METHOD_VERSION", "Implausible", "implausibility", "joined", "translate"]


def in_batches(
    translator: Translator, tasks: Iterable[Task], work: Callable[[Task], Working], *, block: int
) -> Iterator[TranslatedRow | FailedRow]:
    """Do the work for every task. Equal texts of a block are translated once; the first row pays for them.

    Args:
        translator: who translates.
        tasks: read a block at a time.
        work: yields the texts that it needs now, gets their translations, and returns the row's result.
        block: rows that are at it together, at least 1.

    Yields:
        One result per task, in order.

    Raises:
        VeriglotError: the translator did not answer every text; or whatever it raises.
    """
    source = iter(tasks)
    while rows := list(islice(source, block)):
        yield from _block(translator, [work(row) for row in rows])


def _block(translator: Translator, running: list[Working]) -> Iterator[TranslatedRow | FailedRow]:
    results: dict[int, TranslatedRow | FailedRow] = {}
    given: dict[int, Sequence[Translation] | None] = dict.fromkeys(range(len(running)))
    while given:
        asked: list[tuple[int, list[TranslationRequest]]] = []
        for number, answers in given.items():
            try:
                asked.append((number, next(running[number]) if answers is None else running[number].send(answers)))
            except StopIteration as stop:
                results[number] = stop.value
        translations = _translated(translator, [text for _, wanted in asked for text in wanted])
        at = 0
        given = {}
        for number, wanted in asked:
            given[number] = translations[at : at + len(wanted)]
            at += len(wanted)
    for number in range(len(running)):
        yield results[number]


def _translated(translator: Translator, wanted: list[TranslationRequest]) -> list[Translation]:
    import msgspec

    once = list(dict.fromkeys(wanted))
    replies = list(translator.translate(once)) if once else []
    if len(replies) != len(once):
        raise VeriglotError(f"The translator gave {len(replies)} translations of {len(once)} texts.")
    by_text = dict(zip(once, replies, strict=True))
    results, paid = [], set()
    for text in wanted:
        reply = by_text[text]
        results.append(msgspec.structs.replace(reply, calls=0, tokens_in=0, tokens_out=0) if text in paid else reply)
        paid.add(text)
    return results


class Segment(NamedTuple):
    """A stretch of a text, half-open code points; `words` says whether there is anything to translate in it."""

    start: int
    end: int
    words: bool


def segments_of(text: str, tag: str, *, by_sentence: bool) -> list[Segment]:
    """The pieces of a text, in order; what lies between them is white space or without words.

    Args:
        text: any text.
        tag: its BCP 47 tag.
        by_sentence: a piece a sentence; otherwise the whole is one.
    """
    if by_sentence:
        bounds = sentences(text, tag)
    else:
        start, end = len(text) - len(text.lstrip()), len(text.rstrip())
        bounds = [(start, end)] if start < end else []
    return [Segment(start, end, any(map(str.isalnum, text[start:end]))) for start, end in bounds]


def joined(text: str, pieces: Sequence[Segment], translations: Sequence[str], tag: str) -> tuple[str, list[int]]:
    """The translation of a text, and where each piece begins in it.

    A space between two sentences is what the language sets there; any other white space stays as it is.

    Args:
        text: the text.
        pieces: of it.
        translations: of each.
        tag: BCP 47 tag of the translations.
    """
    parts: list[str] = []
    places: list[int] = []
    length = at = 0
    for piece, translation in zip(pieces, translations, strict=True):
        between = text[at : piece.start]
        if not between.strip() and "\n" not in between and places:
            between = space_of(tag) if between or space_of(tag) else ""
        parts += (between, translation)
        length += len(between)
        places.append(length)
        length += len(translation)
        at = piece.end
    parts.append(text[at:])
    return "".join(parts), places


# Whether a translation is one: in the right language and script, whole, of a plausible length, not in a loop.


Implausible = Literal[
    "no_text", "untranslated", "wrong_script", "wrong_language", "loops", "garbled", "too_short", "too_long"
]

_SCRIPTS = {"Jpan": {"Hira", "Kana", "Hani"}, "Kore": {"Hang", "Hani"}, "Hans": {"Hani"}, "Hant": {"Hani"}}
_MOST_FOREIGN = 0.5  # share of the letters in other scripts: names and formulas stand in every text
_LONG = 60  # letters from which a language can be told
_LONG_DENSE = 25
_DENSE = {"Jpan", "Kore", "Hans", "Hant", "Thai", "Laoo", "Khmr", "Mymr"}  # a code point says more, or spaces are few
_WEIGHT = {"Jpan": 2.2, "Hans": 3.0, "Hant": 3.0, "Kore": 2.0}  # code points of an alphabet that one of these is
_SURE = 0.9
_RATIO = 3.5  # times as long, or as short, in code points of an alphabet
_SLACK = 24
_FEW = 4  # words: a name may be the same in both languages
_NEIGHBOURS = (
    {"id", "ms"}, {"hr", "bs", "sr"}, {"no", "nn", "da"}, {"cs", "sk"}, {"gl", "pt", "es"},
    {"hi", "mr", "ne", "mai", "bho"}, {"fa", "tg"}, {"bg", "mk"},
    {"zh", "yue", "wuu", "ja"}, {"zu", "xh"}, {"rw", "rn"},
)  # fmt: skip


def implausibility(source: str, translation: str, source_tag: str, target_tag: str) -> tuple[Implausible, str] | None:
    """What speaks against a translation, and the same in words; None where nothing does.

    A heuristic, and wide on purpose: it tells what is no translation from what may be one, not good from bad.

    Args:
        source: the text.
        translation: of it, without markers.
        source_tag, target_tag: BCP 47 tags.
    """
    if not any(char.isalnum() for char in translation):
        return ("no_text", "there is no word in it")
    if fold(source).split() == fold(translation).split() and len(words(source, source_tag)) > _FEW:
        if not same_language(source_tag, target_tag):
            return ("untranslated", "it is the text itself")
        return None
    broken = garbled(translation)
    if broken is not None and garbled(source) is None:
        return ("loops" if broken == "looping" else "garbled", broken.replace("_", " "))
    if _repeats(translation, target_tag) and not _repeats(source, source_tag):
        return ("loops", "it says the same over and over")
    return _wrong_tongue(translation, target_tag, source) or _wrong_length(source, translation, source_tag, target_tag)


def _repeats(text: str, tag: str) -> bool:
    folded = fold(text)
    return is_repetitive([folded[start:end] for start, end in words(folded, tag)], text)


def _wrong_tongue(text: str, tag: str, source: str) -> tuple[Implausible, str] | None:
    entry = find_language(tag)
    if entry is None:
        return None
    shares = script_shares(text)
    own = _SCRIPTS.get(entry.script, {entry.script})
    letters = sum(char.isalpha() for char in text)
    foreign = sum(share for script, share in shares.items() if script not in own)
    of_source = sum(share for script, share in script_shares(source).items() if script not in own)
    if shares and foreign > _MOST_FOREIGN and (letters >= _SLACK or of_source <= _MOST_FOREIGN):
        return ("wrong_script", f"{foreign:.0%} of its letters are not in the script of {entry.name}")
    if letters < (_LONG_DENSE if entry.script in _DENSE else _LONG):
        return None
    identified = identify(text)
    if identified is None or identified.confidence < _SURE or same_language(identified.tag, tag):
        return None
    bases = {identified.tag.partition("-")[0], entry.base}
    if any(bases <= group for group in _NEIGHBOURS):
        return None
    return ("wrong_language", f"it is in {identified.tag}, not in {entry.tag}")


def _wrong_length(source: str, text: str, source_tag: str, target_tag: str) -> tuple[Implausible, str] | None:
    before, after = _size(source, source_tag), _size(text, target_tag)
    if after > _RATIO * before + _SLACK:
        return ("too_long", f"{len(text)} code points for {len(source)}")
    if before > _RATIO * after + _SLACK:
        return ("too_short", f"{len(text)} code points for {len(source)}")
    return None


def _size(text: str, tag: str) -> float:
    entry = find_language(tag)
    return len(text.strip()) * (_WEIGHT.get(entry.script, 1.0) if entry is not None else 1.0)


@dataclass
class SegmentedText:
    """A text in its pieces, with the marks in each.

    Attributes:
        what: `response`, `evidence` or `question`.
        text: the text.
        tag: its BCP 47 tag.
        pieces: of it.
        marks: per piece, the parts of marks that lie in it, in code points of the piece.
        owners: per piece, the number of the mark of each part.
    """

    what: str
    text: str
    tag: str
    pieces: list[Segment]
    marks: list[list[tuple[int, int]]] = field(default_factory=list)
    owners: list[list[int]] = field(default_factory=list)

    @classmethod
    def of(
        cls, what: str, text: str, tag: str, marks: Sequence[tuple[int, int]] = (), *, by_sentence: bool
    ) -> SegmentedText:
        """Cut a text, and its marks with it; a part of a mark without any word is left out."""
        result = cls(what, text, tag, segments_of(text, tag, by_sentence=by_sentence))
        for piece in result.pieces:
            side = side_of(text[piece.start : piece.end], tag) if marks else None
            parts, owners = [], []
            for number, (start, end) in enumerate(marks):
                part = (max(start - piece.start, 0), min(end, piece.end) - piece.start)
                if side is not None and part[0] < part[1] and words_inside(side, part):
                    parts.append(part)
                    owners.append(number)
            result.marks.append(parts)
            result.owners.append(owners)
        return result

    def piece(self, number: int) -> str:
        """The text of a piece."""
        return self.text[self.pieces[number].start : self.pieces[number].end]


@dataclass
class PendingText:
    """Something that is to be translated for a row.

    Attributes:
        what: `response`, `tags`, `span`, `evidence` or `question`.
        tag: BCP 47 tag of the text.
        plain: the text without markers.
        sent: the text as it is sent.
        marks: how many markers it has.
        text: its translation, once there is a good one; without markers.
        spans: where the markers came back.
        fault: why the last reply was not taken: a reason, and the same in words.
    """

    what: str
    tag: str
    plain: str
    sent: str
    marks: int = 0
    text: str | None = None
    spans: tuple[tuple[int, int], ...] = ()
    fault: tuple[str, str] | None = None

    @property
    def needed(self) -> bool:
        """Whether there is no row without it."""
        return self.what in {"response", "evidence", "question"}

    def take(self, reply: Translation, target: str) -> None:
        """Take a translation if it can be used; otherwise `fault` says why not."""
        self.fault = (reply.unfit, reply.detail) if reply.unfit is not None else None
        if self.fault is not None:
            return
        text = reply.text.strip()
        spans: tuple[tuple[int, int], ...] = ()
        if self.marks:
            read = unmarked(text, self.marks)
            if isinstance(read, MarkerFault):
                self.fault = (read.reason, read.detail)
                return
            text, spans = read.text, read.spans
        self.fault = implausibility(self.plain, text, self.tag, target)
        if self.fault is None:
            self.text, self.spans = text, spans


if TYPE_CHECKING:
    Working = Generator[list[TranslationRequest], Sequence[Translation], TranslatedRow | FailedRow]


def row_of(task: Task, settings: TranslationSettings, translator: Translator, aligner: Aligner | None) -> Working:
    """Translate one sample.

    Args:
        task: the sample, and into what.
        settings: how.
        translator: who is going to; only its attributes are looked at.
        aligner: for the strategy `align`; None leaves it out.

    Returns:
        What became of it, or a failed row where a call gave nothing.
    """
    return _Job(task, settings, translator, aligner).run()


class _Job:
    def __init__(
        self, task: Task, settings: TranslationSettings, translator: Translator, aligner: Aligner | None
    ) -> None:
        self._task = task
        self._settings = settings
        self._translator = translator
        self._aligner = aligner if "align" in settings.strategies else None
        self._rejections: list[TranslationRejection] = []
        self._cost = [0, 0, 0]
        self._orders: dict[tuple[str, str], PendingText] = {}
        sample = task.sample
        spans = {(mark.start, mark.end) for layer in sample.annotations for mark in layer.spans or ()}
        units = {(mark.start, mark.end) for layer in sample.annotations for mark in layer.units or ()}
        self._marks = sorted(spans | units)
        self._response = self._cut("response", sample.response, task.source, self._marks)
        self._around = self._given()

    def run(self) -> Working:
        self._plan()
        for attempt in range(1, (self._settings.attempts if self._translator.varies else 1) + 1):
            due = [order for order in self._orders.values() if order.text is None]
            if not due:
                break
            wanted = [
                TranslationRequest(order.sent, order.tag, self._task.target, order.marks > 0, attempt) for order in due
            ]
            replies = yield wanted
            self._pay(replies)
            for order, reply in zip(due, replies, strict=True):
                if reply.unfit == "no_reply":
                    calls, tokens_in, tokens_out = self._cost
                    return FailedRow(
                        reply.detail, id=self._task.id, calls=calls, tokens_in=tokens_in, tokens_out=tokens_out
                    )
                order.take(reply, self._task.target)
                if order.fault is not None:
                    self._reject(order.what, *order.fault, attempt=attempt, text=reply.text)
        return self._row()

    def _pay(self, replies: Sequence[Translation]) -> None:
        for reply in replies:
            paid = (reply.calls, reply.tokens_in, reply.tokens_out)
            self._cost = [a + b for a, b in zip(self._cost, paid, strict=True)]

    def _cut(self, what: str, text: str, tag: str, marks: Sequence[tuple[int, int]] = ()) -> SegmentedText:
        return SegmentedText.of(what, text, tag, marks, by_sentence=self._translator.by_sentence)

    def _given(self) -> dict[tuple[str, str], SegmentedText]:
        """The texts around the response that are to be translated too, by language and text."""
        sample, source = self._task.sample, self._task.source
        texts: list[tuple[str, str, str]] = []
        if self._settings.evidence == "translate" and sample.task != Kind.TRANSLATION:
            for passage in sample.evidence:
                tag = passage.language or source
                texts += [("evidence", tag, part) for part in (passage.text, passage.title or "") if part.strip()]
        if self._settings.question == "translate" and sample.question and sample.question.strip():
            texts.append(("question", source, sample.question))
        return {(tag, text): self._cut(what, text, tag) for what, tag, text in texts if tag != self._task.target}

    def _plan(self) -> None:
        """Everything that the strategies need of the translator."""
        strategies = self._settings.strategies
        for number, piece in enumerate(self._response.pieces):
            text, marks = self._response.piece(number), self._response.marks[number]
            if not piece.words:
                continue
            sent = marked(text, marks) if marks and "tags" in strategies else None
            if isinstance(sent, str):
                self._order("tags", self._task.source, text, sent, len(marks))
            elif sent is not None:
                self._reject("tags", sent.reason, sent.detail, text=text)
            if sent is None or strategies != ("tags",):
                self._order("response", self._task.source, text, text)
            if "spans" in strategies:
                whole = side_of(text, self._task.source).words
                for start, end in marks:
                    if start > whole[0][0] or end < whole[-1][1]:
                        self._order("span", self._task.source, text[start:end].strip(), text[start:end].strip())
        for context in self._around.values():
            for number, piece in enumerate(context.pieces):
                if piece.words:
                    self._order(context.what, context.tag, context.piece(number), context.piece(number))

    def _order(self, what: str, tag: str, plain: str, sent: str, marks: int = 0) -> None:
        order = self._orders.setdefault((tag, sent), PendingText(what, tag, plain, sent, marks))
        if order.what == "span" and what != "span":
            order.what = what  # a span that is a sentence elsewhere, and needed there

    def _reject(self, what: str, reason: str, detail: str, attempt: int = 1, text: str = "") -> None:
        task = self._task
        self._rejections.append(
            TranslationRejection(task.id, task.sample.id, task.target, what, reason, detail, attempt, text)
        )

    def _row(self) -> TranslatedRow:
        """The row out of what there is by now."""
        missing = self._missing()
        if missing is not None:
            self._reject("row", *missing)
            return self._result(None, ())
        translations: list[str] = []
        placed: list[tuple[int, int, PlacedMark | None]] = []  # piece, mark, where
        for number in range(len(self._response.pieces)):
            text, places = self._piece(number)
            translations.append(text)
            placed += [(number, m, p) for m, p in zip(self._response.owners[number], places, strict=True)]
        text, at = joined(self._response.text, self._response.pieces, translations, self._task.target)
        projected = ProjectedResponse.of(
            text, self._marks, [(mark, at[piece], position) for piece, mark, position in placed]
        )
        around = {key: self._whole(context) for key, context in self._around.items()}
        result = projected_sample(
            self._task, self._settings, projected, around, self._translator.signature, self._how()
        )
        if result.refused is not None:
            self._reject("row", *result.refused, text=text)
        return self._result(result.sample, result.counts)

    def _missing(self) -> tuple[str, str] | None:
        """Why there is no row: something that has to be translated is not."""
        for number, piece in enumerate(self._response.pieces):
            if not piece.words or self._translations(number):
                continue
            failed = [o for o in self._orders.values() if o.plain == self._response.piece(number) and o.fault]
            return failed[-1].fault if failed else ("markers_in_text", "no strategy is left")
        for context in self._around.values():
            for number, piece in enumerate(context.pieces):
                order = self._orders[context.tag, context.piece(number)] if piece.words else None
                if order is not None and order.text is None and order.fault is not None:
                    return (order.fault[0], f"{context.what}: {order.fault[1]}")
        return None

    def _translations(self, number: int) -> list[PendingText]:
        """The translations of a piece, those with markers first."""
        text, marks = self._response.piece(number), self._response.marks[number]
        sent = marked(text, marks) if marks else None
        keys = (sent, text) if isinstance(sent, str) else (text,)
        orders = (self._orders.get((self._task.source, key)) for key in keys)
        return [order for order in orders if order is not None and order.text is not None]

    def _piece(self, number: int) -> tuple[str, list[PlacedMark | None]]:
        """The translation of a piece in which its marks are placed best, and where they are."""
        text, marks, target = self._response.piece(number), self._response.marks[number], self._task.target
        if not self._response.pieces[number].words:
            return text, []
        source = side_of(text, self._task.source)
        apart = {mark: translated for mark in marks if (translated := self._apart(text[mark[0] : mark[1]])) is not None}
        best: tuple[str, list[PlacedMark | None]] | None = None
        for order in self._translations(number):
            assert order.text is not None
            tagged = order.spans if order.marks else None
            side = side_of(order.text, target)
            places = best_of(source, side, marks, tagged=tagged, apart=apart, aligner=self._aligner)
            if best is None or _worth(places) > _worth(best[1]) + 1e-9:
                best = (order.text, places)
        assert best is not None
        return best

    def _apart(self, part: str) -> str | None:
        if "spans" not in self._settings.strategies:
            return None
        order = self._orders.get((self._task.source, part.strip()))
        return order.text if order is not None else None

    def _whole(self, text: SegmentedText) -> str:
        """The translation of a text without marks."""
        parts = []
        for number, piece in enumerate(text.pieces):
            part = self._orders[text.tag, text.piece(number)].text if piece.words else text.piece(number)
            assert part is not None
            parts.append(part)
        return joined(text.text, text.pieces, parts, self._task.target)[0]

    def _how(self) -> str | None:
        return self._aligner.signature if self._aligner is not None else None

    def _result(self, sample: Sample | None, counts: Sequence[MarkCount]) -> TranslatedRow:
        task = self._task
        return TranslatedRow(task.id, task.target, sample, tuple(self._rejections), tuple(counts), *self._cost)


def _worth(places: Sequence[PlacedMark | None]) -> float:
    return sum(projection.quality for projection in places if projection is not None) / max(1, len(places))


# Translate-train: annotated samples into other languages, with their spans (mFAVA, section 4.1, without its losses).
#
# mFAVA translated FAVA's training set with NLLB and laid the spans onto tokens. What became of spans that did not
# survive is not told there; here each has a place with a quality, or is counted as dropped.


METHOD_VERSION = "2"  # raise it with any change of what is taken, or of where marks go
_BLOCK = 32


def translate(
    output: Path,
    samples: Iterable[Sample | FailedRow],
    targets: Sequence[str],
    translator: Translator,
    *,
    aligner: Aligner | None = None,
    settings: TranslationSettings | None = None,
    inputs: Sequence[str] = (),
    options: dict[str, str | bool | None] | None = None,
    block: int = _BLOCK,
    restart: bool = False,
    retry: bool = False,
    seen: Callable[[msgspec.Struct | FailedRow], None] | None = None,
) -> Tally:
    """Translate every sample into every target.

    Args:
        output: JSON lines of samples; their annotations are of the kind `model`, whoever marked the original. Rows that
            were set aside, and replies that were not taken, go to `rejected_path(output)`, the account to
            `translation_account_path(output)`. All are made at the end from `OUT.rows.jsonl`, where a run that stopped
            goes on.
        samples: the same ones in the same order at each call.
        targets: BCP 47 tags or names.
        translator: who translates.
        aligner: for the strategy `align`; None leaves it out.
        settings: how; the defaults where None.
        inputs, restart, retry, seen: as for `responses`.
        options: further settings that change the rows.
        block: rows that are worked on together.

    Returns:
        What became of the rows. One that was set aside is done; one whose calls gave nothing is failed.

    Raises:
        UsageError: no target or the same one twice, no strategy, a threshold outside 0 to 1, fewer than one attempt, or
            the output was begun otherwise.
        UnknownNameError: no such language or strategy.
        VeriglotError: whatever the translator raises; what is done is kept.
    """
    settings = settings or TranslationSettings()
    tags = _validated(targets, settings, aligner)
    stage = Checkpoint(
        output,
        signature=translator.signature,
        inputs=inputs,
        options={
            "targets": ",".join(tags),
            "settings": msgspec.json.encode(settings, order="deterministic").decode(),
            "aligner": aligner.signature if aligner is not None else None,
            "method": f"translating@{METHOD_VERSION}",
            **(options or {}),
        },
        finish=_part,
        restart=restart,
        retry=retry,
        maker="translator",
    )

    def work(tasks: Iterator[Task]) -> Iterator[TranslatedRow | FailedRow]:
        return in_batches(translator, tasks, lambda task: _worked(task, settings, translator, aligner), block=block)

    return stage.run(translation_tasks(samples, tags), work, seen=seen)


def translation_tasks(samples: Iterable[Sample | FailedRow], targets: Sequence[str]) -> Iterator[Task | FailedRow]:
    """Every sample with every target. The language of one that states none is told from its response, if it can be."""
    for sample in samples:
        if isinstance(sample, FailedRow):
            yield sample
            continue
        identified = None if sample.language else identify(sample.response)
        source = _known(sample.language) if sample.language else identified.tag if identified is not None else ""
        for target in targets:
            yield Task(f"{sample.id}/{target}", sample, source, target)


def _known(tag: str) -> str:
    entry = find_language(tag)
    return entry.tag if entry is not None else tag


def _worked(task: Task, settings: TranslationSettings, translator: Translator, aligner: Aligner | None) -> Working:
    if not task.source:
        yield from ()
        return _aside(task, "unknown_language", "the language of the response cannot be told")
    if task.source == task.target:
        return _aside(task, "same_language", "the response is in that language already")
    if not any(map(str.isalnum, task.sample.response)):
        return _aside(task, "no_text", "the response holds no words")
    return (yield from row_of(task, settings, translator, aligner))


def _aside(task: Task, reason: str, detail: str) -> TranslatedRow:
    rejection = TranslationRejection(task.id, task.sample.id, task.target, "row", reason, detail)
    return TranslatedRow(task.id, task.target, None, (rejection,), ())


def _validated(targets: Sequence[str], settings: TranslationSettings, aligner: Aligner | None) -> tuple[str, ...]:
    tags = tuple(get_language(target).tag for target in targets)
    if not tags or len(set(tags)) < len(tags):
        raise UsageError("Name at least one target, each once.")
    for strategy in settings.strategies:
        if strategy not in STRATEGIES:
            raise UnknownNameError("strategy", strategy, STRATEGIES)
    if not settings.strategies or (settings.strategies == ("align",) and aligner is None):
        raise UsageError("No strategy is left that could place a span.", remedy="Name tags, spans, or an aligner.")
    if not 0.0 <= settings.threshold <= 1.0:
        raise UsageError(f"The threshold is {settings.threshold}; it lies between 0 and 1.")
    if settings.attempts < 1:
        raise UsageError("At least one attempt is needed.")
    return tags


def _part(rows: Path, target: Path) -> None:
    """Part what was made into samples, rejections and the account."""
    output = final_path(target)
    rejected = rejected_path(output)
    decoder = msgspec.json.Decoder(TranslatedRow)

    def written() -> Iterator[TranslatedRow]:
        with rows.open("rb") as lines, target.open("wb") as good, open_whole(rejected) as bad:
            for line in lines:
                row = decoder.decode(line)
                if row.sample is not None:
                    good.write(encode(row.sample) + b"\n")
                bad.writelines(encode(rejection) + b"\n" for rejection in row.rejections)
                yield row

    account = translation_account_of(written(), failed=failed_rows(output))
    write_json(translation_account_path(output), account, indent=2)
