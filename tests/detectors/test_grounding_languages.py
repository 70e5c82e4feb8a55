"""What the shipped weights do with short texts in sixteen languages of twelve scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from many_languages import TEXTS

from veriglot.detection import detect
from veriglot.detectors.registry import load_detector
from veriglot.text.unicode import script_of

if TYPE_CHECKING:
    from veriglot.detection import Prediction
    from veriglot.records import Detector

FAR = "Volcanoes erupt when magma rises through the crust. Bakers knead the dough twice before dawn."

INVENTED = {
    "en": "Bakers knead the dough twice before dawn.",
    "de": "Bäcker kneten den Teig zweimal vor dem Morgen.",
    "es": "Los panaderos amasan dos veces antes del alba.",
    "fr": "Les boulangers pétrissent la pâte avant l'aube.",
    "fi": "Leipurit vaivaavat taikinan kahdesti ennen aamua.",
    "tr": "Fırıncılar hamuru sabahtan önce yoğurur.",
    "ru": "Пекари дважды месят тесто до рассвета.",
    "el": "Οι φουρνάρηδες ζυμώνουν το ψωμί πριν την αυγή.",
    "ar": "يعجن الخبازون العجين مرتين قبل الفجر.",
    "he": "האופים לשים את הבצק פעמיים לפני הזריחה.",
    "hi": "नानबाई भोर से पहले आटा दो बार गूंधते हैं।",
    "zh": "面包师在黎明前揉两次面团。",
    "ja": "パン職人は夜明け前に生地を二度こねる。",
    "ko": "제빵사는 새벽 전에 반죽을 두 번 치댄다.",
    "th": "คนทำขนมปังนวดแป้งสองครั้งก่อนรุ่งสาง",
    "ka": "მცხობლები გათენებამდე ცომს ორჯერ ზელენ.",
}


@pytest.fixture(scope="module")
def detector() -> Detector:
    return load_detector("grounding", words=True)


def texts_of(prediction: Prediction) -> list[str]:
    return [str(span.text) for span in prediction.spans]


def test_there_are_many_languages_and_scripts() -> None:
    assert len(TEXTS) >= 10
    assert len({script_of(told.evidence) for told in TEXTS.values()}) >= 10


@pytest.mark.parametrize("tag", TEXTS)
def test_a_sentence_of_the_evidence_gets_no_mark(detector: Detector, tag: str) -> None:
    told = TEXTS[tag]
    assert told.sentence in told.evidence
    assert texts_of(detect(told.evidence, response=told.sentence, language=tag, detector=detector)) == []
    assert texts_of(detect(told.evidence, response=told.evidence, language=tag, detector=detector)) == []


def test_a_changed_year_is_marked_in_most_languages(detector: Detector) -> None:
    """At the default threshold, alone or with neighbours: in 13 of 16 languages at least."""
    hit, more = [], 0
    for tag, told in TEXTS.items():
        assert told.other in told.changed
        spans = texts_of(detect(told.evidence, response=told.changed, language=tag, detector=detector))
        if any(told.other in span for span in spans):
            hit.append(tag)
        more += sum(told.other not in span for span in spans)
    assert len(hit) >= 13, f"only in {hit}"
    assert more <= 3


def test_invented_sentences_are_marked_in_most_languages(detector: Detector) -> None:
    """A sentence of another text: more than half of its characters marked in 12 of 16 languages at least."""
    hit = []
    for tag, told in TEXTS.items():
        prediction = detect(told.evidence, response=INVENTED[tag], language=tag, detector=detector)
        if sum(map(len, texts_of(prediction))) > len(INVENTED[tag]) / 2:
            hit.append(tag)
    assert len(hit) >= 12, f"only in {hit}"


@pytest.mark.parametrize("tag", ["en", "ru", "zh", "ar"])
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_support_by_any_passage_is_support(detector: Detector, tag: str, order: tuple[int, ...]) -> None:
    told = TEXTS[tag]
    passages = [FAR, told.evidence, TEXTS["ka"].evidence]
    arranged = [passages[i] for i in order]
    assert texts_of(detect(arranged, response=told.sentence, language=tag, detector=detector)) == []
    assert any(
        told.other in t for t in texts_of(detect(arranged, response=told.changed, language=tag, detector=detector))
    )


@pytest.mark.parametrize("tag", ["en", "de", "fr", "tr", "ru"])
def test_evidence_in_several_passages_supports_as_the_whole(detector: Detector, tag: str) -> None:
    told = TEXTS[tag]
    before, after = told.evidence.split(told.sentence)
    for passages in ([before, told.sentence, after], [after, before, told.sentence]):
        found = detect(passages, response=told.evidence, language=tag, detector=detector)
        assert sum(map(len, texts_of(found))) < 0.15 * len(told.evidence)


def test_a_distractor_that_says_the_wrong_year_elsewhere_is_not_confused_with_silence(detector: Detector) -> None:
    """Support is by any passage: where one of them says it, the year stands."""
    told = TEXTS["en"]
    contradicted = detect([told.evidence, told.changed], response=told.changed, language="en", detector=detector)
    assert texts_of(contradicted) == []


def test_serbian_is_supported_across_its_alphabets(detector: Detector) -> None:
    evidence = "Камени мост преко Лене има девет лукова. Мост је отворио градоначелник Андерс Холм 1862. године."
    same = "Most je otvorio gradonačelnik Anders Holm 1862. godine."
    changed = "Most je otvorio gradonačelnik Anders Holm 1907. godine."
    kept = detect(evidence, response=same, language="sr", detector=detector)
    assert sum(map(len, texts_of(kept))) < len(same) / 3
    assert any(
        "1907" in text for text in texts_of(detect(evidence, response=changed, language="sr", detector=detector))
    )
