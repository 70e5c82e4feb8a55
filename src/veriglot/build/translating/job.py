"""One sample on its way into another language.

Nothing here translates: the work yields the texts that it needs next, so that those of many rows go to the translator
together (`batches.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from veriglot.build.translating.alignment import side_of
from veriglot.build.translating.choosing import best_of
from veriglot.build.translating.markers import marked
from veriglot.build.translating.moving import Moved, moved_sample
from veriglot.build.translating.orders import Order, Text
from veriglot.build.translating.pieces import joined
from veriglot.build.translating.records import TranslatedRow, TranslationRejection
from veriglot.build.translating.translator import Wanted
from veriglot.records import Task as Kind
from veriglot.run import FailedRow

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from veriglot.build.translating.alignment import Aligner
    from veriglot.build.translating.choosing import Placed
    from veriglot.build.translating.records import MarkCount, Task, TranslationSettings
    from veriglot.build.translating.translator import Translated, Translator
    from veriglot.records import Sample

    Working = Generator[list[Wanted], Sequence[Translated], TranslatedRow | FailedRow]

__all__ = ["Working", "row_of"]


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
        self._orders: dict[tuple[str, str], Order] = {}
        sample = task.sample
        spans = {(one.start, one.end) for layer in sample.annotations for one in layer.spans or ()}
        units = {(one.start, one.end) for layer in sample.annotations for one in layer.units or ()}
        self._marks = sorted(spans | units)
        self._response = self._cut("response", sample.response, task.source, self._marks)
        self._around = self._given()

    def run(self) -> Working:
        self._plan()
        for attempt in range(1, (self._settings.attempts if self._translator.varies else 1) + 1):
            due = [one for one in self._orders.values() if one.text is None]
            if not due:
                break
            wanted = [Wanted(one.sent, one.tag, self._task.target, one.marks > 0, attempt) for one in due]
            replies = yield wanted
            self._pay(replies)
            for one, reply in zip(due, replies, strict=True):
                if reply.unfit == "no_reply":
                    calls, tokens_in, tokens_out = self._cost
                    return FailedRow(
                        reply.detail, id=self._task.id, calls=calls, tokens_in=tokens_in, tokens_out=tokens_out
                    )
                one.take(reply, self._task.target)
                if one.fault is not None:
                    self._reject(one.what, *one.fault, attempt=attempt, text=reply.text)
        return self._row()

    def _pay(self, replies: Sequence[Translated]) -> None:
        for one in replies:
            paid = (one.calls, one.tokens_in, one.tokens_out)
            self._cost = [a + b for a, b in zip(self._cost, paid, strict=True)]

    def _cut(self, what: str, text: str, tag: str, marks: Sequence[tuple[int, int]] = ()) -> Text:
        return Text.of(what, text, tag, marks, by_sentence=self._translator.by_sentence)

    def _given(self) -> dict[tuple[str, str], Text]:
        """The texts around the response that are to be translated too, by language and text."""
        sample, source = self._task.sample, self._task.source
        texts: list[tuple[str, str, str]] = []
        if self._settings.evidence == "translate" and sample.task != Kind.TRANSLATION:
            for passage in sample.evidence:
                tag = passage.language or source
                texts += [("evidence", tag, one) for one in (passage.text, passage.title or "") if one.strip()]
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
        for one in self._around.values():
            for number, piece in enumerate(one.pieces):
                if piece.words:
                    self._order(one.what, one.tag, one.piece(number), one.piece(number))

    def _order(self, what: str, tag: str, plain: str, sent: str, marks: int = 0) -> None:
        found = self._orders.setdefault((tag, sent), Order(what, tag, plain, sent, marks))
        if found.what == "span" and what != "span":
            found.what = what  # a span that is a sentence elsewhere, and needed there

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
        placed: list[tuple[int, int, Placed | None]] = []  # piece, mark, where
        for number in range(len(self._response.pieces)):
            text, places = self._piece(number)
            translations.append(text)
            placed += [(number, m, p) for m, p in zip(self._response.owners[number], places, strict=True)]
        text, at = joined(self._response.text, self._response.pieces, translations, self._task.target)
        moved = Moved.of(text, self._marks, [(mark, at[piece], one) for piece, mark, one in placed])
        around = {key: self._whole(one) for key, one in self._around.items()}
        made = moved_sample(self._task, self._settings, moved, around, self._translator.signature, self._how())
        if made.refused is not None:
            self._reject("row", *made.refused, text=text)
        return self._result(made.sample, made.counts)

    def _missing(self) -> tuple[str, str] | None:
        """Why there is no row: something that has to be translated is not."""
        for number, piece in enumerate(self._response.pieces):
            if not piece.words or self._translations(number):
                continue
            failed = [o for o in self._orders.values() if o.plain == self._response.piece(number) and o.fault]
            return failed[-1].fault if failed else ("markers_in_text", "no strategy is left")
        for one in self._around.values():
            for number, piece in enumerate(one.pieces):
                order = self._orders[one.tag, one.piece(number)] if piece.words else None
                if order is not None and order.text is None and order.fault is not None:
                    return (order.fault[0], f"{one.what}: {order.fault[1]}")
        return None

    def _translations(self, number: int) -> list[Order]:
        """The translations of a piece, those with markers first."""
        text, marks = self._response.piece(number), self._response.marks[number]
        sent = marked(text, marks) if marks else None
        keys = (sent, text) if isinstance(sent, str) else (text,)
        found = (self._orders.get((self._task.source, key)) for key in keys)
        return [order for order in found if order is not None and order.text is not None]

    def _piece(self, number: int) -> tuple[str, list[Placed | None]]:
        """The translation of a piece in which its marks are placed best, and where they are."""
        text, marks, target = self._response.piece(number), self._response.marks[number], self._task.target
        if not self._response.pieces[number].words:
            return text, []
        source = side_of(text, self._task.source)
        apart = {mark: found for mark in marks if (found := self._apart(text[mark[0] : mark[1]])) is not None}
        best: tuple[str, list[Placed | None]] | None = None
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

    def _whole(self, one: Text) -> str:
        """The translation of a text without marks."""
        parts = []
        for number, piece in enumerate(one.pieces):
            found = self._orders[one.tag, one.piece(number)].text if piece.words else one.piece(number)
            assert found is not None
            parts.append(found)
        return joined(one.text, one.pieces, parts, self._task.target)[0]

    def _how(self) -> str | None:
        return self._aligner.signature if self._aligner is not None else None

    def _result(self, sample: Sample | None, counts: Sequence[MarkCount]) -> TranslatedRow:
        task = self._task
        return TranslatedRow(task.id, task.target, sample, tuple(self._rejections), tuple(counts), *self._cost)


def _worth(places: Sequence[Placed | None]) -> float:
    return sum(place.quality for place in places if place is not None) / max(1, len(places))
