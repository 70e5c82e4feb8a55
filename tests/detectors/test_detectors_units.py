"""Facts and sentences of predictions: any detector's, with the words' confidences or not at all."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import msgspec
import pytest

from veriglot.detectors.registry import load_detector
from veriglot.detectors.units import Level, WithUnits, judged_units
from veriglot.metrics.spans import combine_scores
from veriglot.records import Detector, Evidence, JudgedUnit, Prediction, Sample, Span, Status, Word

if TYPE_CHECKING:
    from collections.abc import Sequence

RESPONSE = "Mira Holt, a Danish painter, was born in Odense in 1901. She died in Lima."
EVIDENCE = "Mira Holt was a Danish painter. She was born in Odense in 1902 and died in Lima in 1988."


def sample(response: str = RESPONSE, language: str | None = "en", *, evidence: str = EVIDENCE) -> Sample:
    return Sample("a", response, language=language, evidence=(Evidence(evidence),) if evidence else ())


class SpansAlone:
    """A detector that knows no words."""

    name, taxonomy, threshold, signature = "spans@1", "hat", 0.5, "detector:spans@1"

    def predict(self, samples: Sequence[Sample]) -> list[Prediction]:
        return [Prediction(s.id, Status.SCORED, self.name, 0.9, (Span(0, 4, "hallucination", 0.9),)) for s in samples]


class FactsAlone(SpansAlone):
    """A detector that judges facts itself, and knows no words."""

    def predict(self, samples: Sequence[Sample]) -> list[Prediction]:
        own = (JudgedUnit(0, 9, "clause", 0.25),)
        return [msgspec.structs.replace(found, units=own) for found in super().predict(samples)]


class Forgetful(SpansAlone):
    """Loses the last sample of every batch."""

    def predict(self, samples: Sequence[Sample]) -> list[Prediction]:
        return super().predict(samples)[:-1]


def test_facts_of_the_shipped_detector() -> None:
    plain, judged = load_detector("grounding", words=True), WithUnits(load_detector("grounding", words=True), "fact")
    assert isinstance(judged, Detector)
    (before,), (after,) = plain.predict([sample()]), judged.predict([sample()])
    assert (after.score, after.spans, after.words) == (before.score, before.spans, None)
    units = after.units or ()
    assert [(unit.kind, [RESPONSE[a:b] for a, b in unit.parts or ((unit.start, unit.end),)]) for unit in units] == [
        ("clause", ["Mira Holt", "was born"]), ("aside", ["a Danish painter"]), ("name", ["in Odense"]),
        ("date", ["in 1901"]), ("sentence", ["She died in Lima"]),
    ]  # fmt: skip
    confidence = {(word.start, word.end): word.confidence for word in before.words or ()}
    for unit in units:
        inside = [
            value for (a, b), value in confidence.items()
            if any(start <= a and b <= end for start, end in unit.parts or ((unit.start, unit.end),))
        ]  # fmt: skip
        assert unit.score == max(inside)
    wrong = max(units, key=lambda unit: unit.score)
    assert wrong.kind == "date"
    assert wrong.score >= plain.threshold


def test_sentences_gather_their_facts() -> None:
    found = {level: WithUnits(load_detector("grounding", words=True), level).predict([sample()])[0] for level in LEVELS}
    facts, sentences = (found[level].units or () for level in LEVELS)
    assert [(unit.kind, unit.start, unit.end) for unit in sentences] == [("sentence", 0, 56), ("sentence", 57, 74)]
    import numpy as np

    for sentence in sentences:
        inside = np.array([fact.score for fact in facts if sentence.start <= fact.start < sentence.end])
        assert sentence.score == pytest.approx(combine_scores(inside), abs=1e-4)


LEVELS: tuple[Level, ...] = ("fact", "sentence")


@pytest.mark.parametrize("level", LEVELS)
def test_the_signature_says_how_units_are_made_and_words_are_kept_on_demand(level: Level) -> None:
    judged = WithUnits(load_detector("grounding", words=True), level, words=True)
    (found,) = judged.predict([sample()])
    assert found.signature == judged.signature
    assert f"units:{level}." in judged.signature
    assert len(found.words or ()) == 15
    assert pickle.loads(pickle.dumps(judged)).predict([sample()]) == [found]


def test_what_was_not_checked_has_no_units() -> None:
    (found,) = WithUnits(load_detector("grounding", words=True), "fact").predict([sample(evidence="")])
    assert (found.status, found.units) == (Status.NO_EVIDENCE, None)


def test_no_score_is_invented_without_confidences_of_words() -> None:
    (found,) = WithUnits(SpansAlone(), "fact").predict([sample()])
    assert found.units is None
    assert found.notes == ("units:no word confidences",)
    assert len(found.spans or ()) == 1


def test_facts_that_the_detector_judged_itself_are_kept_and_sentences_are_not_made_of_them() -> None:
    (facts,) = WithUnits(FactsAlone(), "fact").predict([sample()])
    assert (facts.units, facts.notes) == ((JudgedUnit(0, 9, "clause", 0.25),), ("units:the detector's own",))
    (whole,) = WithUnits(FactsAlone(), "sentence").predict([sample()])
    assert (whole.units, whole.notes) == (None, ("units:no word confidences",))


def test_a_detector_that_loses_samples_is_not_covered_for() -> None:
    assert len(WithUnits(Forgetful(), "fact").predict([sample(), sample()])) == 1


def test_a_language_without_rules_says_that_its_facts_are_sentences() -> None:
    judged = WithUnits(load_detector("grounding", words=True), "fact")
    bengali = "মীরা হোল্ট ১৯০২ সালে জন্মগ্রহণ করেন। তিনি লিমায় মারা যান।"
    (found,) = judged.predict([sample(bengali, "bn", evidence=bengali)])
    assert [unit.kind for unit in found.units or ()] == ["sentence", "sentence"]
    assert "facts:sentences" in found.notes
    (english,) = judged.predict([sample()])
    assert "facts:sentences" not in english.notes


def test_words_of_another_segmentation_will_do() -> None:
    """Confidences may stand on pieces of words, as those of a tokenizer do."""
    place = RESPONSE.index("1901")
    pieces = (Word(place, place + 2, 0.2), Word(place + 2, place + 4, 0.7))
    found = Prediction("a", Status.SCORED, "d@1", 0.5, (), words=pieces)
    units = judged_units(sample(), found, "fact") or ()
    assert [unit.score for unit in units] == [0.0, 0.0, 0.0, 0.7, 0.0]


def test_units_survive_a_file_and_old_files_load() -> None:
    from veriglot.records import decode_json, encode, from_mapping

    (found,) = WithUnits(load_detector("grounding", words=True), "fact").predict([sample()])
    assert from_mapping(decode_json(encode(found)), Prediction) == found
    old = {key: value for key, value in decode_json(encode(found)).items() if key != "units"}
    assert from_mapping(old, Prediction) == msgspec.structs.replace(found, units=None)
