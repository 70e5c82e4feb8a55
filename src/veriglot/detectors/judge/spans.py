"""The judge of spans: which parts of a response the evidence does not support, with types of any taxonomy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from veriglot.detectors.judge.answers import (
    DIGITS,
    Ballot,
    Mark,
    Quote,
    excerpt,
    label_probabilities,
    list_probability,
    locate,
    location_notes,
    read_answer,
    spans_of,
)
from veriglot.detectors.judge.base import Case, Outcome, Passages, Question, WindowedJudge
from veriglot.detectors.judge.prompts import passage_blocks, question_block, tagged
from veriglot.llm.client import AnswerError
from veriglot.records.taxonomy import taxonomy

if TYPE_CHECKING:
    from veriglot.llm.client import Reply

__all__ = ["SpanJudge"]


class _Quoted(msgspec.Struct, frozen=True):
    text: str
    type: str
    before: str = ""


class _Answer(msgspec.Struct, frozen=True):
    spans: tuple[_Quoted, ...]


@dataclass(frozen=True)
class _Opinion:
    """What one reply says: the marks that were located, the probability that there are any, and what to note."""

    marks: tuple[Mark, ...]
    probability: float | None
    notes: tuple[str, ...]


class SpanJudge(WindowedJudge):
    """`judge:spans`: unsupported spans with types, quoted by the model and located in the response.

    Args:
        taxonomy: the taxonomy of the types; their meanings are told to the model as the taxonomy has them.
        options: of `WindowedJudge` and `Judge`.
    """

    kind: ClassVar[str] = "spans"
    prompt_name: ClassVar[str] = "spans"
    fields: ClassVar[frozenset[str]] = frozenset({"language", "types", "question", "evidence", "response"})

    def __init__(self, *, taxonomy: str = "fava", **options: Any) -> None:
        self.taxonomy = taxonomy
        self._types = _types_of(taxonomy)
        super().__init__(**options)

    @classmethod
    def _own_options(cls) -> tuple[str, ...]:
        return ("taxonomy", *super()._own_options())

    def _default_threshold(self) -> float:
        """Half of several opinions; of a single one all that it marks: doubt of a type is no doubt of the mark."""
        return 0.0 if self._asking.samples == 1 else super()._default_threshold()

    def _parts(self) -> dict[str, object]:
        voted = self._asking.samples > 1 or self._window is not None
        return {**super()._parts(), "taxonomy": self.taxonomy, "unit": "word" if voted else "char"}

    def _questions(self, case: Case) -> list[Question]:
        return [Question(self._filled(case, window), _schema(list(self._types))) for window in self._windows(case)]

    def _filled(self, case: Case, window: Passages) -> str:
        sample = case.sample
        return self._prompt.filled(
            language=case.language,
            types="\n".join(f"- {name}: {meaning}" for name, meaning in self._types.items()),
            question=question_block(sample),
            evidence=passage_blocks(window, sample.response, sample.question or ""),
            response=tagged("response", sample.response, *(passage.text for passage in sample.evidence)),
        )

    def _opinion(self, case: Case, replies: list[Reply]) -> _Opinion:
        opinions = [self._reading(case, reply) for reply in replies]
        return opinions[0] if len(opinions) == 1 else self._in_every_window(case, opinions)

    def _in_every_window(self, case: Case, opinions: list[_Opinion]) -> _Opinion:
        """What no window supports. How sure the model was of each window says little of all of them together."""
        ballot = Ballot(case.sample.response, case.resolved.tag, [opinion.marks for opinion in opinions])
        spans = ballot.spans(1.0, list(self._types))
        marks = tuple(Mark(span.start, span.end, str(span.type)) for span in spans)
        notes = dict.fromkeys(note for opinion in opinions for note in opinion.notes)
        return _Opinion(marks, None, (f"evidence:{len(opinions)} windows", *notes))

    def _reading(self, case: Case, reply: Reply) -> _Opinion:
        """What the reply on one window says."""
        quoted = read_answer(reply, _Answer).spans
        for span in quoted:
            if span.type not in self._types:
                raise AnswerError(
                    f"The judge names the type {span.type!r}, which the taxonomy {self.taxonomy!r} lacks."
                )
        quotes = [Quote(span.text, span.before) for span in quoted]
        locations = locate(case.sample.response, quotes, case.resolved.tag)
        if quoted and not any(locations):
            shown = excerpt(quoted[0].text)
            raise AnswerError(
                f"None of the judge's {len(quoted)} quotes stands in the response; the first is {shown!r}."
            )
        known = label_probabilities(reply, "type", [span.type for span in quoted], list(self._types))
        sure = [None if known is None else known[n][span.type] for n, span in enumerate(quoted)]
        marks = tuple(
            Mark(location.start, location.end, span.type, p)
            for location, span, p in zip(locations, quoted, sure, strict=True)
            if location is not None
        )
        return _Opinion(marks, list_probability(reply, "spans"), location_notes(quotes, locations))

    def _outcome(self, case: Case, opinions: list[_Opinion]) -> Outcome:
        notes = tuple(dict.fromkeys(note for opinion in opinions for note in opinion.notes))
        if self._asking.samples > 1:
            return self._voted(case, opinions, notes)
        (opinion,) = opinions
        spans, crossing = spans_of(case.sample.response, opinion.marks)
        if crossing:
            notes = (*notes, f"spans:{crossing} crossing ones parted")
        marked = tuple(span for span in spans if span.confidence is None or span.confidence >= self._threshold)
        if len(marked) < len(spans):
            notes = (*notes, f"spans:{len(spans) - len(marked)} below the threshold")
        if opinion.probability is None:
            return Outcome(float(bool(opinion.marks)), marked, "verdict", notes=notes)
        return Outcome(round(opinion.probability, DIGITS), marked, "token_probabilities", notes=notes)

    def _voted(self, case: Case, opinions: list[_Opinion], notes: tuple[str, ...]) -> Outcome:
        ballot = Ballot(case.sample.response, case.resolved.tag, [opinion.marks for opinion in opinions])
        return Outcome(
            score=round(sum(bool(opinion.marks) for opinion in opinions) / len(opinions), DIGITS),
            spans=ballot.spans(self._threshold, list(self._types)),
            confidence="samples",
            words=ballot.words(),
            notes=notes,
        )


def _types_of(name: str) -> dict[str, str]:
    entry = taxonomy(name)
    return {type_: meaning for type_, meaning in entry.types.items() if type_ not in entry.clean}


def _schema(types: list[str]) -> dict[str, Any]:
    text = {"type": "string"}
    fields = {"before": text, "text": text, "type": {"type": "string", "enum": types}}
    span = {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
    spans = {"type": "array", "items": span}
    return {"type": "object", "properties": {"spans": spans}, "required": ["spans"], "additionalProperties": False}
