"""The judges of translations: one verdict on a whole translation, after the two prompts that HAT describes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import msgspec

from veriglot.detectors.judge.answers import DIGITS, Mark, label_probabilities, read_answer, spans_of
from veriglot.detectors.judge.base import Case, Judge, Outcome, Question, language_name
from veriglot.detectors.judge.prompts import passage_blocks, tagged
from veriglot.judging.language import text_language
from veriglot.llm.output_parser import schema_of

if TYPE_CHECKING:
    from veriglot.llm.client import Reply
    from veriglot.records import Sample

__all__ = ["GuidedTranslationJudge", "TranslationJudge"]

_UNKNOWN = "another language"


class _Answer(msgspec.Struct, frozen=True):
    reason: str
    hallucination: bool


@dataclass(frozen=True)
class _Opinion:
    """One verdict, and the probability of hallucination that its token had, where that is known."""

    hallucination: bool
    probability: float | None


class TranslationJudge(Judge):
    """`judge:translation`: does the translation hold a hallucination? Plainly asked (HAT, Figure 9).

    The evidence is the source. A verdict of yes is one span over the whole response: the judge is not asked where.

    Args:
        options: of `Judge`.
    """

    kind: ClassVar[str] = "translation"
    taxonomy = "hat"
    prompt_name: ClassVar[str] = "translation"
    fields: ClassVar[frozenset[str]] = frozenset({"source_language", "language", "evidence", "response"})

    def _parts(self) -> dict[str, object]:
        return {"unit": "response"}

    def _questions(self, case: Case) -> list[Question]:
        sample = case.sample
        sources = [passage.text for passage in sample.evidence]
        filled = self._prompt.filled(
            source_language=_source_language(sample),
            language=case.language,
            evidence=passage_blocks([("", text) for text in sources], sample.response, tag="source"),
            response=tagged("translation", sample.response, *sources),
        )
        return [Question(filled, schema_of(_Answer))]

    def _opinion(self, case: Case, replies: list[Reply]) -> _Opinion:  # noqa: ARG002
        (reply,) = replies
        verdict = read_answer(reply, _Answer).hallucination
        sure = label_probabilities(reply, "hallucination", ["true" if verdict else "false"], ("true", "false"))
        return _Opinion(verdict, None if sure is None else sure[0]["true"] if verdict else 1.0 - sure[0]["false"])

    def _outcome(self, case: Case, opinions: list[_Opinion]) -> Outcome:
        known = [opinion.probability for opinion in opinions if opinion.probability is not None]
        if len(opinions) > 1:
            score, confidence = sum(opinion.hallucination for opinion in opinions) / len(opinions), "samples"
        elif known:
            score, confidence = known[0], "token_probabilities"
        else:
            score, confidence = float(opinions[0].hallucination), "verdict"
        score = round(score, DIGITS)
        mark = Mark(0, len(case.sample.response), "hallucination", None if confidence == "verdict" else score)
        spans, _ = spans_of(case.sample.response, [mark] if score >= self._threshold else [])
        return Outcome(score, spans, confidence)


class GuidedTranslationJudge(TranslationJudge):
    """`judge:translation-guided`: as `judge:translation`, with guidelines and contrasted examples (HAT, Figure 8)."""

    kind: ClassVar[str] = "translation-guided"
    prompt_name: ClassVar[str] = "translation_guided"


def _source_language(sample: Sample) -> str:
    """The language of the source for the prompt: as given, or as identified."""
    given = next((passage.language for passage in sample.evidence if passage.language), None)
    tag = text_language(" ".join(passage.text for passage in sample.evidence), given)
    return _UNKNOWN if tag is None else language_name(tag)
