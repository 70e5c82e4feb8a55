"""The judge of pairs: what kind of error stands between a true sentence and its edited version (HalluVerse25)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from veriglot.detectors.judge.answers import DIGITS, Mark, label_probabilities, read_answer, spans_of
from veriglot.detectors.judge.base import Case, Judge, Outcome, Question
from veriglot.detectors.judge.prompts import passage_blocks, tagged
from veriglot.llm.client import AnswerError
from veriglot.records import Status
from veriglot.records.taxonomy import taxonomy

if TYPE_CHECKING:
    from collections.abc import Iterable

    from veriglot.llm.client import Reply
    from veriglot.records import Prediction, Sample

__all__ = ["Confusion", "PairJudge", "confusion", "gold_label", "pair_label"]

NO_ERROR = "none"
_MEANING_OF_NONE = "the edited sentence says the same as the true one, or nothing that could be checked"


class _Answer(msgspec.Struct, frozen=True):
    type: str


@dataclass(frozen=True)
class _Opinion:
    """One label, and the probabilities of labels where these are known."""

    label: str
    shares: dict[str, float] | None


class PairJudge(Judge):
    """`judge:pairs`: the type of the error that an edit brought in, as a span over the whole edited sentence.

    The evidence is the true sentence, the response the edited one.

    Args:
        none: whether the model may say that there is no error, as the annotators of HalluVerse25 could (label `0`). Its
            paper's models could not: with False every pair has one of the three types, and its score is 1 by the
            question, which the note `verdict:type only` says.
        options: of `Judge`.
    """

    kind: ClassVar[str] = "pairs"
    taxonomy = "halluverse"
    prompt_name: ClassVar[str] = "pairs"
    fields: ClassVar[frozenset[str]] = frozenset({"language", "types", "evidence", "response"})

    def __init__(self, *, none: bool = True, **options: Any) -> None:
        self._meanings = dict(taxonomy(self.taxonomy).types) | ({NO_ERROR: _MEANING_OF_NONE} if none else {})
        super().__init__(**options)

    @classmethod
    def _own_options(cls) -> tuple[str, ...]:
        return ("none", *super()._own_options())

    def _default_threshold(self) -> float:
        """The likeliest label is taken, however likely it is."""
        return 0.0

    def _parts(self) -> dict[str, object]:
        return {"labels": ",".join(self._meanings), "unit": "response"}

    def _questions(self, case: Case) -> list[Question]:
        sample = case.sample
        originals = [passage.text for passage in sample.evidence]
        filled = self._prompt.filled(
            language=case.language,
            types="\n".join(f"- {name}: {meaning}" for name, meaning in self._meanings.items()),
            evidence=passage_blocks([("", text) for text in originals], sample.response, tag="true-sentence"),
            response=tagged("edited-sentence", sample.response, *originals),
        )
        label = {"type": "string", "enum": list(self._meanings)}
        schema = {"type": "object", "properties": {"type": label}, "required": ["type"], "additionalProperties": False}
        return [Question(filled, schema)]

    def _opinion(self, case: Case, replies: list[Reply]) -> _Opinion:  # noqa: ARG002
        (reply,) = replies
        label = read_answer(reply, _Answer).type
        if label not in self._meanings:
            raise AnswerError(f"The judge names the type {label!r}; it was asked for {', '.join(self._meanings)}.")
        sure = label_probabilities(reply, "type", [label], list(self._meanings))
        return _Opinion(label, None if sure is None else sure[0])

    def _outcome(self, case: Case, opinions: list[_Opinion]) -> Outcome:
        labels = [opinion.label for opinion in opinions]
        label = max(self._meanings, key=labels.count)  # of equals the first in the order of the taxonomy
        shares = {name: labels.count(name) / len(labels) for name in self._meanings}
        confidence = "samples"
        if len(opinions) == 1:
            shares = opinions[0].shares or {}
            confidence = "token_probabilities" if shares else "verdict"
        sure = round(shares[label], DIGITS) if shares else None
        notes: tuple[str, ...] = () if NO_ERROR in self._meanings else ("verdict:type only",)
        marks = [] if label == NO_ERROR else [Mark(0, len(case.sample.response), label, sure)]
        if marks and sure is not None and sure < self._threshold:
            marks, notes = [], (*notes, "spans:1 below the threshold")
        spans, _ = spans_of(case.sample.response, marks)
        return Outcome(round(_score(label, shares), DIGITS), spans, confidence, notes=notes)


def _score(label: str, shares: dict[str, float]) -> float:
    """The probability of an error; where only that of a type is known, or nothing, the verdict."""
    if NO_ERROR in shares:
        return 1.0 - shares[NO_ERROR]
    return float(label != NO_ERROR)


def pair_label(prediction: Prediction) -> str | None:
    """The label of a judged pair: a type of the taxonomy `halluverse`, or `none`; None where it was not judged."""
    if prediction.status is not Status.SCORED:
        return None
    return next((span.type for span in prediction.spans or ()), NO_ERROR)


def gold_label(sample: Sample) -> str | None:
    """The label that a sample of HalluVerse25 carries: a type, `none` for its `0`, or None where it has no label."""
    labels = {unit.label for annotation in sample.annotations for unit in annotation.units or ()}
    if len(labels) == 1:
        return labels.pop()
    return NO_ERROR if not labels and sample.meta.get("label") == "0" else None


class Confusion(msgspec.Struct, frozen=True):
    """How often each gold label was judged as which (HalluVerse25, Figure 4).

    Attributes:
        counts: gold label -> judged label -> pairs.
        not_judged: gold label -> pairs that were not judged; they are in no cell of `counts`.
        unlabelled: pairs without a gold label, which are in neither.
    """

    counts: dict[str, dict[str, int]]
    not_judged: dict[str, int]
    unlabelled: int = 0

    def accuracy(self, gold: str | None = None) -> float | None:
        """Share of the pairs that were judged as their gold label (Table 3).

        Args:
            gold: a gold label; None for all of them together.

        Returns:
            Between 0 and 1. A pair that was not judged counts as wrong. None where there is no pair.
        """
        names = [gold] if gold is not None else list(self.counts)
        right = sum(self.counts.get(name, {}).get(name, 0) for name in names)
        pairs = sum(sum(self.counts.get(name, {}).values()) + self.not_judged.get(name, 0) for name in names)
        return right / pairs if pairs else None


def confusion(samples: Iterable[Sample], predictions: Iterable[Prediction]) -> Confusion:
    """Count judged pairs against their gold labels.

    Args:
        samples: of HalluVerse25, or labelled alike (`gold_label`).
        predictions: of `judge:pairs`, one per sample, in order.

    Raises:
        ValueError: they do not belong together.
    """
    counts: dict[str, dict[str, int]] = {}
    not_judged: dict[str, int] = {}
    unlabelled = 0
    for sample, prediction in zip(samples, predictions, strict=True):
        if sample.id != prediction.id:
            raise ValueError(f"the prediction of {prediction.id!r} stands where that of {sample.id!r} belongs")
        gold, judged = gold_label(sample), pair_label(prediction)
        if gold is None:
            unlabelled += 1
            continue
        row = counts.setdefault(gold, {})
        if judged is None:
            not_judged[gold] = not_judged.get(gold, 0) + 1
        else:
            row[judged] = row.get(judged, 0) + 1
    return Confusion(counts, not_judged, unlabelled)
